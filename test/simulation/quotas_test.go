package simulation_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Quotas of pods: max, limits of users and groups, and maxapplications. They are added up
// here from the configuration and from pods, without the code of the scheduler. In a
// quarter of the histories queues have limits and maxapplications.

// quota is one of the quotas of a pod.
type quota struct {
	queue, of string
	max       resources.Limit
	apps      uint64 // how many applications may run; 0 for no bound
	isMax     bool   // it is the max of a queue, in which preemption makes room
	missing   bool   // the queue is not configured
}

// claimant is a pod as quotas see it.
type claimant struct {
	queue, app string
	request    resources.Vector
}

func claimantOf(p *objects.Pod) claimant {
	return claimant{p.Labels[placement.KeyQueue], appOf(p), p.Request}
}

func claimantPod(p *corev1.Pod) claimant {
	return claimant{p.Labels[placement.KeyQueue], p.Namespace + "/" + p.Labels[placement.KeyApplicationID], request(p)}
}

// userOf is the user of an application and its group, by its name; empty for none.
func userOf(app string) (user, group string) {
	switch {
	case strings.HasPrefix(app, evil+"/"):
		return "", "" // it names other users as it likes, none of these
	case strings.HasSuffix(app, "0"):
		return "ann", "staff"
	case strings.HasSuffix(app, "1"):
		return "bob", "staff"
	}
	return "cat", ""
}

// quotas returns the quotas of a pod, from its queue up.
func (c claimant) quotas(spec *config.Spec) []quota {
	var out []quota
	user, group := userOf(c.app)
	for _, path := range ancestors(c.queue) {
		q := queueOf(spec, path)
		if q == nil {
			out = append(out, quota{queue: path, of: "queue " + path, missing: true})
			continue
		}
		out = append(out, quota{queue: path, of: "queue " + path, max: q.Max, isMax: true},
			quota{queue: path, of: "all of queue " + path, apps: q.MaxApplications})
		if l := limitOf(q.Limits, user, func(l *config.Limit) []string { return l.Users }); l != nil && user != "" {
			out = append(out, quota{queue: path, of: "user " + user + " of queue " + path, max: l.MaxResources, apps: l.MaxApplications})
		}
		if l := limitOf(q.Limits, group, func(l *config.Limit) []string { return l.Groups }); l != nil && group != "" {
			out = append(out, quota{queue: path, of: "group " + group + " of queue " + path, max: l.MaxResources, apps: l.MaxApplications})
		}
	}
	return out
}

// limitOf is the limit for a name, or else for each name; nil for none.
func limitOf(limits []config.Limit, name string, names func(*config.Limit) []string) *config.Limit {
	for _, wanted := range []string{name, "*"} {
		for i := range limits {
			if slices.Contains(names(&limits[i]), wanted) {
				return &limits[i]
			}
		}
	}
	return nil
}

// limited tells whether a pod has other quotas than max.
func (c claimant) limited(spec *config.Spec) bool {
	return slices.ContainsFunc(c.quotas(spec), func(q quota) bool { return !q.isMax && (q.apps > 0 || !q.max.IsUnlimited()) })
}

// tally is what pods use of their quotas.
type tally struct {
	spec *config.Spec
	used map[string]resources.Vector
	apps map[string]map[string]int // pods of each application
	// ran is applications that may run by pods which are gone, and so are not refused. more
	// is such applications by quota, which count beside the others.
	ran  map[string]bool
	more map[string]map[string]bool
}

func newTally(spec *config.Spec) *tally {
	return &tally{spec: spec, used: map[string]resources.Vector{}, apps: map[string]map[string]int{}, more: map[string]map[string]bool{}}
}

// add adds a pod, or takes it out with sign -1.
func (t *tally) add(c claimant, sign int) {
	for _, q := range c.quotas(t.spec) {
		if sign < 0 {
			t.used[q.of] = t.used[q.of].Sub(c.request)
		} else {
			t.used[q.of] = t.used[q.of].Add(c.request)
		}
		if t.apps[q.of] == nil {
			t.apps[q.of] = map[string]int{}
		}
		if t.apps[q.of][c.app] += sign; t.apps[q.of][c.app] == 0 {
			delete(t.apps[q.of], c.app)
		}
	}
}

// addDoubtful adds a pod that may count.
func (t *tally) addDoubtful(c claimant) {
	for _, q := range c.quotas(t.spec) {
		if t.more[q.of] == nil {
			t.more[q.of] = map[string]bool{}
		}
		t.used[q.of], t.more[q.of][c.app] = t.used[q.of].Add(c.request), true
	}
}

// refuses returns the quota that has no room for one more pod; empty if all have room.
func (t *tally) refuses(c claimant, counts func(*quota) bool) string {
	for _, q := range c.quotas(t.spec) {
		apps := t.apps[q.of]
		n := uint64(len(apps))
		for app := range t.more[q.of] {
			if apps[app] == 0 && app != c.app {
				n++
			}
		}
		switch {
		case !counts(&q):
		case !q.max.Allows(t.used[q.of], c.request):
			return fmt.Sprintf("%s uses %v of %v", q.of, t.used[q.of], q.max)
		case q.apps > 0 && apps[c.app] == 0 && !t.ran[c.app] && n >= q.apps:
			return fmt.Sprintf("%s has %d applications of %d", q.of, n, q.apps)
		}
	}
	return ""
}

// of tells what is used of the quotas of a pod.
func (t *tally) of(c claimant) string {
	text := c.app
	for _, q := range c.quotas(t.spec) {
		if q.apps > 0 || !q.max.IsUnlimited() {
			text += fmt.Sprintf("; %s: %v of %v, applications %v of %d", q.of, t.used[q.of], q.max, t.apps[q.of], q.apps)
		}
	}
	return text
}

func everyQuota(*quota) bool { return true }

func exceptMax(q *quota) bool { return !q.isMax }

// running is what pods with a node use, as a process counts them. The caller holds the lock.
func (in *instance) running(spec *config.Spec) *tally {
	t := newTally(spec)
	for _, p := range in.api.allPods() {
		if p.Spec.SchedulerName == managed && p.Spec.NodeName != "" && !ended(p) {
			t.add(in.claimant(p), 1)
		}
	}
	return t
}

// addRan counts the applications that had a pod with a node, too, and still have pods. A
// process counts them if it has seen that pod. The caller holds the lock.
func (s *simulation) addRan(t *tally) {
	for _, p := range s.api.allPods() {
		if c := claimantPod(p); p.Spec.SchedulerName == managed && pending(p) && s.api.ran[c.app] {
			c.request = resources.Vector{}
			t.addDoubtful(c)
		}
	}
}

// mayRun tells whether all queues of a pod are known and all quotas have room for it. The
// caller holds the lock.
func (s *simulation) mayRun(c claimant, used *tally) bool {
	unknown := func(q quota) bool { return q.missing || s.removed[q.queue] }
	return !slices.ContainsFunc(c.quotas(used.spec), unknown) && used.refuses(c, everyQuota) == ""
}

var anyQueue = regexp.MustCompile(` *- name: [abcdxy]\n(?: *resources: .*\n)? *properties: .*\n`)

// limit adds limits and maxapplications to the queues of a configuration, where the history has some.
func (s *simulation) limit(d document) document {
	if s.settings.dynamic {
		d.text = strings.Replace(d.text, "create: false", "create: true", 1)
		d.spec, _ = config.Parse([]byte(d.text))
	}
	if !s.settings.limited {
		return d
	}
	r := newChance(s.seed + 4_000_000_007 + uint64(s.step.Load()))
	for range 20 {
		text := anyQueue.ReplaceAllStringFunc(d.text, func(queue string) string {
			if s.settings.turns && strings.Contains(queue, "name: c\n") {
				return queue // it becomes a parent of a queue without limits
			}
			return queue + r.limits(queue[:strings.IndexByte(queue, '-')]+"  ")
		})
		if spec, err := config.Parse([]byte(text)); err == nil { // queues below may get no more than those above
			return document{text, spec}
		}
	}
	return d
}

// limits returns the limits of a queue as the lines of a document.
func (r chance) limits(indent string) string {
	text := ""
	if r.of(3) {
		text += fmt.Sprintf("%smaxapplications: %d\n", indent, 1+r.IntN(3))
	}
	var list []string
	for _, of := range []string{"users: [ann]", "groups: [staff]", `users: ["*"]`} {
		if !r.of(4) {
			continue
		}
		l := fmt.Sprintf("{limit: some, %s, maxresources: {vcore: %d}", of, 2+r.IntN(5))
		if r.of(3) {
			l += fmt.Sprintf(", maxapplications: %d", 1+r.IntN(2))
		}
		list = append(list, l+"}")
	}
	if len(list) > 0 {
		text += indent + "limits: [" + strings.Join(list, ", ") + "]\n"
	}
	return text
}
