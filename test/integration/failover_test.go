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

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/rest"
)

// allowPreemption is the annotation by which a pod opts out of preemption.
const allowPreemption = "yunikorn.apache.org/allow-preemption"

// moment is a write at which the leader is killed.
type moment struct {
	name      string
	nth       int
	forwarded bool // the API server got it
	matches   func(write) bool
	stops     time.Duration // how long the victims take to stop
}

// slowly is longer than the lease: the victims still exist when the standby takes over,
// and it has to know that they are terminating.
const slowly = leaseDuration + 3*time.Second

const quickly = 300 * time.Millisecond

// failoverMoments are used in turn. The first three are those of every test run.
func failoverMoments(victims int) []moment {
	claims := func(w write) bool { return w.sets(held, corev1.ConditionTrue) }
	disrupts := func(w write) bool { return w.sets(corev1.DisruptionTarget, corev1.ConditionTrue) }
	binds := func(w write) bool { return w.binds() && strings.HasSuffix(w.pod, "asker-0") }
	return []moment{
		{"after-claim", 1, true, claims, quickly},
		{"after-first-delete", 1, true, write.deletes, slowly},
		{"after-last-delete", victims, true, write.deletes, slowly},
		{"before-last-delete", victims, false, write.deletes, quickly},
		{"before-bind", 1, false, binds, quickly},
		{"before-claim", 1, false, claims, quickly},
		{"after-disruption", 1, true, disrupts, slowly},
		{"before-first-delete", 1, false, write.deletes, slowly},
		{"after-bind", 1, true, binds, quickly},
		{"before-release", 1, false, func(w write) bool { return w.sets(held, corev1.ConditionFalse) }, quickly},
	}
}

// takeover is one round according to the deeds of the replicas.
type takeover struct {
	renewed time.Time // when the killed one last renewed the lease
	killed  time.Time
	took    time.Time // when the standby had the lease
}

// A standby takes the lease with its first look after the lease has run out, counted from when it
// saw the last renewal. It looks once in a retry period, which upstream stretches by up to 1.2 times
// its length. The rest of takeoverMost is for a machine with other work: package leader tests the
// time itself, on a clock that is not late.
const takeoverMost = leaseDuration + 2*retryPeriod*22/10 + 5*time.Second

// TestFailoverWhilePreempting kills the leader of two replicas in the middle of a preemption, again and
// again: the standby, which has done nothing until then, takes over when the lease has run out, reads
// nothing again, evicts only pods that the claim names and none twice, and the asker gets its node.
func TestFailoverWhilePreempting(t *testing.T) {
	const victims = 3
	both := setupReplicas(t, owedQueues(40, time.Second), elected)
	both.leader.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	both.standby.nodePool = both.leader.nodePool
	c := both.leader.keepHistory()
	moments := failoverMoments(victims)
	began := time.Now()
	var rounds []takeover
	for i := range failovers {
		m := moments[i%len(moments)]
		rounds = append(rounds, both.failover(c, fmt.Sprintf("r%d-%s", i, m.name), m, victims))
		both.leader, both.standby = both.standby, both.leader
	}
	t.Logf("%d failovers took %v; kill to lease: %s; last renewal to lease: %s", failovers, time.Since(began).Round(100*time.Millisecond),
		spread(rounds, func(o takeover) time.Duration { return o.took.Sub(o.killed) }), spread(rounds, func(o takeover) time.Duration { return o.took.Sub(o.renewed) }))
	for range 2 { // a pod that differs counts as wrong if two runs in a row find it
		both.leader.checkHealth()
	}
}

// checkHealth waits until the scheduler has run its consistency check again, which it
// does from time to time, and checks that it passed. After a check that took long the
// next one is more than a minute away.
func (e *env) checkHealth() {
	called := time.Now()
	eventually(e, 8*patience, "the health of now is known", func() (bool, string) {
		request := expect.Get(http.NewRequestWithContext(e.Context(), http.MethodGet, "http://"+e.rest+"/ws/v1/scheduler/healthcheck", http.NoBody))(e)
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
		expect.That(e, h.Healthy, "the health check says %s", body)
		return true, ""
	})
}

// spread returns the durations of a step in all rounds.
func spread(rounds []takeover, of func(takeover) time.Duration) string {
	var took []time.Duration
	for _, o := range rounds {
		took = append(took, of(o).Round(time.Millisecond))
	}
	slices.Sort(took)
	return fmt.Sprintf("least %v, median %v, most %v", took[0], took[len(took)/2], took[len(took)-1])
}

// failover is one round. The killed replica is the standby afterwards.
func (p *pair) failover(c *history, name string, m moment, victims int) takeover {
	leader, standby := p.leader, p.standby
	standby.fill(name+"-victim", victims+1, inQueue("root.borrows"), stopsAfter(m.stops))
	standby.expectBooks() // its caches are filled
	began := time.Now()
	sprung := leader.proxy.set(trap{m.matches, m.nth, m.forwarded})
	asker := standby.create(name+"-asker", 1, inQueue("root.owed"), requests("cpu", fmt.Sprint(victims)))[0]
	select {
	case <-sprung:
	case <-time.After(patience):
		leader.Fatalf("%s: the leader never came to that point; it runs: %t", name, leader.process.Running())
	}
	killed := leader.proxy.sprungAt()
	if took := standby.deeds.between(standby.started, killed, deed.takesLease); len(took) > 0 {
		leader.Fatalf("%s: the standby had the lease though the leader lived: %v", name, took)
	}
	did := standby.trespasses(killed)
	expect.That(leader, len(did) == 0, "%s: the standby did this while the leader lived: %v", name, did)
	standby.optOutClaimed(asker)
	c.awaitPlaced(asker)
	c.expectNoMore(calm/2, victims, name+"-victim")
	p.checkEvictions(c, name, asker, began)
	took := standby.checkTakeover(name, killed, leader)
	standby.expectBooks()
	standby.removePods(standby.Context())
	leader.restart()
	return took
}

// optOutClaimed makes the running pods that an asker's claim names opt out of preemption.
func (e *env) optOutClaimed(asker *corev1.Pod) {
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

// checkEvictions checks what both replicas did to the pods of a round.
func (p *pair) checkEvictions(c *history, name string, asker *corev1.Pod, began time.Time) {
	e := p.standby.env
	claim, _ := c.claim(asker.UID)
	var claimed, evicted []string
	for _, uid := range claim.Victims {
		claimed = append(claimed, c.lastOf(uid).Name)
	}
	for _, v := range c.evicted(name + "-victim") {
		evicted = append(evicted, v.pod.Name)
		expect.That(e, conditionIs(c.lastOf(v.pod.UID), corev1.DisruptionTarget, corev1.ConditionTrue),
			"%s: pod %s was evicted without condition %s", name, v.pod.Name, corev1.DisruptionTarget)
	}
	granted := func(d deed) bool { return d.evicts() != "" && d.succeeded() }
	deletes := append(p.leader.deeds.between(began, time.Time{}, granted), p.standby.deeds.between(began, time.Time{}, granted)...)
	wrong := judgeEvictions(claimed, evicted, deletes)
	expect.That(e, len(wrong) == 0, "%s: %q; deletes: %v", name, wrong, deletes)
}

// renewals are the writes of the lease by a replica that was killed.
func (r *replica) renewals(killed time.Time) []deed {
	leases := r.deeds.between(r.started, killed, deed.takesLease)
	if len(leases) == 0 {
		r.Fatal("the leader never wrote its lease")
	}
	return leases
}

// countsFrom is the earliest moment from which the standby can count the lease of a replica with these
// renewals. The standby compares renewals by a time in whole seconds: three can look like one to it
// (the lease taken, renewed at once, and renewed half a second later), but not four. So what it counts
// from is no earlier than the request that wrote the lease the last time but two. The time is that of
// the log, not that in the lease, which is of another clock.
func countsFrom(renewals []deed) time.Time { return renewals[max(len(renewals)-3, 0)].asked }

// checkTakeover checks when the standby became the leader and what it did then.
func (r *replica) checkTakeover(name string, killed time.Time, leader *replica) takeover {
	renewals := leader.renewals(killed)
	leased := r.deeds.between(killed, time.Time{}, deed.takesLease)
	acted := r.deeds.between(killed, time.Time{}, deed.acts)
	wrote := r.deeds.between(killed, time.Time{}, deed.touchesPods)
	if len(leased) == 0 || len(acted) == 0 || len(wrote) == 0 {
		r.Fatalf("%s: the standby wrote the lease %d times, acted %d times, %d times on pods", name, len(leased), len(acted), len(wrote))
	}
	took, first := leased[0].at.Sub(killed), acted[0].at.Sub(killed)
	r.Logf("%s: the %s had the lease %v after the kill, acted after %v, wrote to a pod after %v: %v", name, r.name,
		took.Round(time.Millisecond), first.Round(time.Millisecond), wrote[0].at.Sub(killed).Round(time.Millisecond), wrote[0])
	// However late the machine records one of them, this cannot be less.
	earliest := slices.MinFunc(acted, func(a, b deed) int { return a.asked.Compare(b.asked) })
	over := earliest.asked.Sub(countsFrom(renewals))
	expect.That(r, over >= leaseDuration,
		"%s: the standby acted %v after the last renewal that it can have seen first, the lease is %v",
		name, over, leaseDuration)
	expect.That(r, first <= takeoverMost,
		"%s: the standby acted %v after the kill, want at most %v", name, first, takeoverMost)
	again := r.deeds.between(killed, time.Time{}, deed.lists)
	expect.That(r, len(again) == 0, "%s: the standby read all pods again: %v", name, again)
	expect.That(r, len(r.deeds.between(r.started, killed, deed.lists)) > 0,
		"%s: the log does not have how the standby read the pods at its start", name)
	return takeover{renewed: renewals[len(renewals)-1].at, killed: killed, took: leased[0].at}
}

// TestStandbyThatActsIsFound plants a second replica that ignores which replica has the
// lease: the log must show it.
func TestStandbyThatActsIsFound(t *testing.T) {
	const n = 30 // more than one of two gets to bind before the other; all of them fit
	careless := func(s *settings) { s.launch.LeaderElection, s.launch.Args = false, nil }
	// With upstream's times a leader that gets no processor for seconds keeps leading.
	forLong := func(s *settings) { s.launch.LeaderElection = true }
	both := setupReplicas(t, owedQueues(40, time.Second), forLong, careless)
	both.leader.expectBooks()
	both.standby.fill("p", n, inQueue("root.borrows"), requests("cpu", "10m"))
	for _, r := range []*replica{both.leader, both.standby} {
		did := r.trespasses(time.Now())
		t.Logf("the %s did %v", r.name, did)
		expect.That(t, len(did) > 0, "the log of the %s says that it did nothing", r.name)
	}
}

// TestEvictionsAreJudged plants forbidden treatments of the victims of a plan.
func TestEvictionsAreJudged(t *testing.T) {
	gone := func(names ...string) (out []deed) {
		for _, n := range names {
			out = append(out, deed{method: "DELETE", path: "/api/v1/namespaces/n/pods/" + n, status: 200})
		}
		return out
	}
	for _, test := range []struct {
		name             string
		claimed, evicted []string
		deletes          []deed
		want             []string // part of each finding
	}{
		{"as planned", []string{"a", "b"}, []string{"b", "a"}, gone("a", "b"), nil},
		{"the answer to a delete was lost", []string{"a", "b"}, []string{"a", "b"}, gone("b"), nil},
		{"a second set", []string{"a"}, []string{"a", "c"}, gone("a", "c"), []string{"pod c was evicted"}},
		{"deleted again", []string{"a", "b"}, []string{"a", "b"}, gone("a", "b", "a"), []string{"pod a was deleted 2 times"}},
		{"forgotten", []string{"a", "b"}, []string{"a"}, gone("a"), []string{"pod b is named"}},
	} {
		got := judgeEvictions(test.claimed, test.evicted, test.deletes)
		expect.That(t, slices.EqualFunc(got, test.want, strings.Contains),
			"%s: got %q, want %q", test.name, got, test.want)
	}
}

// takeLease writes another holder into the lease of the scheduler.
func takeLease(ctx context.Context) error {
	leases := suite.client.CoordinationV1().Leases("kube-system")
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		l, err := leases.Get(ctx, "paddock-scheduler", metav1.GetOptions{})
		if err != nil {
			return err
		}
		l.Spec.HolderIdentity, l.Spec.RenewTime = new("thief"), new(metav1.NowMicro())
		_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
		return err
	})
}

// TestLeaseOfAnotherHolder: an account with all rights of a namespace cannot write the
// lease, and a lease of that name in its namespace changes nothing. While an account that
// may write the lease keeps it, the scheduler does nothing: the process that led ends, and
// the one that is started in its place waits. It goes on once the lease has run out.
func TestLeaseOfAnotherHolder(t *testing.T) {
	r, through := newReplica(t, "first")
	r.env = setup(t, owedQueues(100, 500*time.Millisecond), through, elected, preemption("retryInterval", "1s"))
	e := r.env
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	tenant := policed{t, e.ns}
	tenant.allow("eve", "admin")
	leases := tenant.as("eve").CoordinationV1()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "paddock-scheduler"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("thief"), LeaseDurationSeconds: new(int32(3600))},
	}
	succeeds(e, "a tenant makes a lease of that name in its namespace", func() error {
		_, err := leases.Leases(e.ns).Create(e.Context(), lease, metav1.CreateOptions{})
		return err
	})
	_, err := leases.Leases("kube-system").Update(e.Context(), lease, metav1.UpdateOptions{})
	expect.That(t, apierrors.IsForbidden(err), "a tenant may write the lease: %v", err)
	e.create("lent", 4, inQueue("root.borrows"))
	e.expect("lent", 4, 0, "")

	stolen := time.Now()
	e.ok(takeLease(e.Context()))
	keeping, stop := context.WithCancel(e.Context())
	kept := make(chan error, 1)
	go func() {
		var err error
		for ticker := time.NewTicker(retryPeriod); keeping.Err() == nil && err == nil; <-ticker.C {
			err = takeLease(context.WithoutCancel(keeping))
		}
		kept <- err
	}()
	eventually(e, patience, "the scheduler ends, because it has lost the lease", func() (bool, string) {
		return !e.process.Running(), ""
	})
	did := r.deeds.between(stolen.Add(renewDeadline+retryPeriod), time.Time{}, deed.acts)
	expect.That(t, len(did) == 0, "long after it lost the lease it did this: %v", did)
	asker := e.create("asker", 1, inQueue("root.owed"), requests("cpu", "2"))[0]
	r.restart()
	e.expectBooks() // it has seen the pod
	throughout(e, calm, "the asker waits", func() (bool, string) { return e.get(asker).Spec.NodeName == "", "" })
	c.expectNoMore(calm, 0, "lent")
	did = r.trespasses(time.Now())
	expect.That(t, len(did) == 0, "without the lease it did this: %v", did)
	stop()
	e.ok(<-kept)
	e.awaitRunning(asker)
	c.expectNoMore(calm, 2, "lent")
	last := e.get(asker)
	expect.That(t, conditionIs(last, held, corev1.ConditionFalse), "the hold has not ended: %v", last.Status.Conditions)
}
