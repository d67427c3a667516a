package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/rest"
)

// checkHealth waits until the scheduler has run its consistency check again, which it
// does from time to time, and checks that it passed. After a check that took long the
// next one is more than a minute away.
func (e *env) checkHealth(ctx context.Context) {
	e.Helper()
	called := time.Now()
	eventually(e, 8*patience, "the health of now is known", func() (bool, string) {
		request := expect.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.rest+"/ws/v1/scheduler/healthcheck", http.NoBody))(e)
		asked := time.Now()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		body := expect.Get(io.ReadAll(response.Body))(e)
		age, err := strconv.Atoi(response.Header.Get("Age")) // elapsed whole seconds
		if err != nil || asked.Add(-time.Duration(age+1)*time.Second).Before(called) {
			return false, fmt.Sprintf("%s, %d s old: %s", response.Status, age, body)
		}
		var h rest.Health
		e.ok(json.Unmarshal(body, &h))
		if !h.Healthy {
			e.Errorf("the health check says %s", body)
		}
		return true, ""
	})
}

// TestKilledWhilePreempting kills the scheduler at the writes of a preemption, just before
// the API server gets it or just after; in the nightly run at every write, both ways. The next scheduler continues from
// whatever was written: it evicts no additional victim, and the asker gets its node. Pods
// that the claim names and that are not deleted yet opt out of preemption meanwhile, so a
// new plan would differ: the claim counts.
func TestKilledWhilePreempting(t *testing.T) {
	const victims = 3
	proxy := newAPIProxy(t)
	e := setup(t, preemptionQueues, proxy.through)
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	proxy.spring = func() { expect.Holds(t, e.process.Kill()) }
	points := []struct {
		name    string
		times   int // how often it is written
		matches func(write) bool
	}{
		{"claim", 1, func(w write) bool { return w.sets(held, corev1.ConditionTrue) }},
		{"taint", 1, func(w write) bool { return w.taints(true) }},
		{"disruption", victims, func(w write) bool { return w.sets(corev1.DisruptionTarget, corev1.ConditionTrue) }},
		{"delete", victims, write.deletes},
		{"bind", 1, func(w write) bool { return w.binds() && strings.HasSuffix(w.pod, "asker-0") }},
		{"release", 1, func(w write) bool { return w.sets(held, corev1.ConditionFalse) }},
		{"untaint", 1, func(w write) bool { return w.taints(false) }},
	}
	began, kills := time.Now(), 0
	for i, point := range points {
		for nth := 1; nth <= point.times; nth++ {
			for _, forwarded := range []bool{false, true} {
				if !everyKill && (nth < point.times || forwarded == (i%2 == 0)) {
					continue
				}
				when := map[bool]string{false: "before", true: "after"}[forwarded]
				e.killAt(c, fmt.Sprintf("%s-%s-%d", when, point.name, nth), proxy, trap{point.matches, nth, forwarded}, victims)
				kills++
			}
		}
	}
	e.checkHealth(t.Context())
	t.Logf("%d kills took %v", kills, time.Since(began).Round(100*time.Millisecond))
}

// killAt fills the node, creates an asker, kills the scheduler at a write, and checks
// what the next one does.
func (e *env) killAt(c *history, name string, proxy *apiProxy, at trap, n int) {
	e.Helper()
	e.fill(name+"-victim", n+1, inQueue("root.borrows"), stopsAfter(300*time.Millisecond))
	sprung := proxy.set(at)
	asker := e.create(name+"-asker", 1, inQueue("root.owed"), requests("cpu", fmt.Sprint(n)))[0]
	select {
	case <-sprung:
	case <-time.After(patience):
		e.Fatalf("%s: the scheduler never came to that point", name)
	}
	killed := time.Now()
	e.optOutClaimed(asker)
	proxy.open()
	e.start()
	c.awaitPlaced(asker)
	_, bound := c.boundAt(asker.UID)
	e.Logf("%s: asker bound %v after the kill", name, bound.Sub(killed).Round(time.Millisecond))
	c.expectNoMore(calm/2, n, name+"-victim")
	claim, _ := c.claim(asker.UID)
	for _, v := range c.evicted(name + "-victim") {
		if !slices.Contains(claim.Victims, v.pod.UID) {
			e.Errorf("%s: pod %s was evicted, and the claim is %+v", name, v.pod.Name, claim)
		}
		if last := c.lastOf(v.pod.UID); !conditionIs(last, corev1.DisruptionTarget, corev1.ConditionTrue) {
			e.Errorf("%s: pod %s was evicted without condition %s", name, v.pod.Name, corev1.DisruptionTarget)
		}
	}
	e.expectNoTaint()
	e.expectBooks()
	e.removePods(e.Context())
}

// optOutClaimed makes the running pods that an asker's claim names opt out of preemption.
func (e *env) optOutClaimed(asker *corev1.Pod) {
	e.Helper()
	now := e.get(asker)
	if !conditionIs(now, held, corev1.ConditionTrue) {
		return
	}
	claim := expect.Get(reservations.ParseClaim(conditionOf(now, held).Message))(e)
	pods := expect.Get(e.listPods(e.Context()))(e)
	for i := range pods {
		if p := &pods[i]; slices.Contains(claim.Victims, p.UID) && p.DeletionTimestamp == nil {
			e.patch(p, fmt.Sprintf(`{"metadata":{"annotations":{%q:"false"}}}`, allowPreemption))
		}
	}
}
