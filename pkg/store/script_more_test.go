package store_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/unmet"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

func (s *script) gated() string {
	var b strings.Builder
	counts := s.store.Gated()
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%s %d\n", code, counts[code])
	}
	return b.String()
}

func (s *script) look() string {
	found := unmet.Find(s.store.Snapshot(), func(leaves []*queues.Queue) []reasons.Code {
		return s.store.WaitsFor(leaves, s.now)
	})
	before, passed, ended := s.meter.Look(s.now, found)
	for _, d := range before {
		s.unmet[d] += passed
	}
	var b strings.Builder
	for _, d := range found {
		fmt.Fprintf(&b, "%s: %s\n", d.Queue, d.Reason)
	}
	for _, took := range ended {
		fmt.Fprintf(&b, "took %v\n", took)
	}
	for _, d := range slices.SortedFunc(maps.Keys(s.unmet), func(a, b unmet.Demand) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), cmp.Compare(a.Reason, b.Reason))
	}) {
		fmt.Fprintf(&b, "so far %s %s: %v\n", d.Queue, d.Reason, s.unmet[d])
	}
	return b.String()
}

// freedUnseen prints the pods that gave room back without an event for it, or plays the end of a cycle that
// checked for them.
func (s *script) freedUnseen(words []string) string {
	switch {
	case len(words) == 0:
	case words[0] == "gone":
		s.store.Vanished(s.store.FreedPods(s.now))
	default:
		s.store.ComeBack(types.UID(words[0]), s.now)
	}
	var b strings.Builder
	for _, e := range s.store.FreedPods(s.now) {
		if e.Nominated {
			fmt.Fprintf(&b, "%s, nominated to %s\n", e.UID, e.Node)
			continue
		}
		fmt.Fprintf(&b, "%s on %q, requests %v\n", e.UID, e.Node, e.Request)
	}
	return b.String()
}

func scriptBudget(t *testing.T, d *datadriven.TestData) objects.Budget {
	b := objects.Budget{Namespace: "ns", Name: d.CmdArgs[0].Key, Generation: 1, Observed: 1}
	tier, disrupted := "", []string{}
	scan(t, d, d.CmdArgs[1:], map[string]any{
		"allowed": &b.Allowed, "healthy": &b.Healthy, "desired": &b.Desired, "generation": &b.Generation,
		"observed": &b.Observed, "tier": &tier, "always-allow": &b.AlwaysAllow, "disrupted": &disrupted,
	})
	if d.HasArg("tier") {
		b.Matches = func(labels map[string]string) bool { return labels["tier"] == tier }
	}
	b.DisruptedPods = map[string]bool{}
	for _, name := range disrupted {
		b.DisruptedPods[name] = true
	}
	return b
}

// originators lists the pods on nodes that plans see as originators.
func (s *script) originators() string {
	var names []string
	for _, n := range s.store.Model().PlanningSnapshot().Nodes {
		for _, p := range n.Pods {
			if p.Originator {
				names = append(names, p.Name)
			}
		}
	}
	return strings.Join(names, " ") + "\n"
}

// plan ends a cycle of a pod of an equivalence class as PostFilter does.
func (s *script) plan(p *objects.Pod, class string) string {
	judged := s.store.CheckQuota(p.UID)
	if !judged.OK() {
		s.store.QuotaRefused(p.UID, s.now)
	}
	text, done := s.planned(p, class)
	switch {
	case done:
	case !judged.OK():
		s.store.QuotaRefused(p.UID, s.now)
	default:
		s.store.NoNode(p.UID, class, reasons.New(reasons.NoNodeFits, "0 of 3 nodes fit"), s.now)
	}
	return text
}

func (s *script) planned(p *objects.Pod, class string) (text string, done bool) {
	input, why := s.input, reasons.Reason{}
	if input == nil {
		input, why = s.store.BeginPlan(p.UID, class, s.permit, s.now)
	}
	if s.input = nil; input == nil {
		if why.Code.IsQuota() {
			s.store.QuotaRefused(p.UID, s.now) // as the plugin ends such a cycle
		}
		return why.String(), why.Code.IsQuota()
	}
	params := input.Params
	params.Fits = s.fits
	d := search.Plan(input.Snapshot, input.Ask, params)
	if d.Outcome != planner.Preempt {
		return s.store.RejectPlan(p.UID, &d, s.now).String(), false
	}
	if why := s.store.AcceptPlan(p.UID, &d, s.now); !why.None() {
		return "not claimed: " + why.String(), false
	}
	var names []string
	for _, v := range d.Victims {
		names = append(names, v.Name)
	}
	return fmt.Sprintf("%s on %s, victims [%s]", d.Outcome, d.Node, strings.Join(names, " ")), true
}

func (s *script) fits(node string, without []*planner.Pod) planner.Fit {
	if s.unfit[node] || s.port != "" && !slices.ContainsFunc(without, func(p *planner.Pod) bool { return p.Name == s.port }) {
		return planner.Fails
	}
	return planner.Passes
}

// nodeFor is the node on which a pod is assumed: its required one, or the first with room for it, or n1.
func (s *script) nodeFor(p *objects.Pod) string {
	if p.RequiredNode != "" {
		return p.RequiredNode
	}
	byName := func(a, b *cache.Node) int { return strings.Compare(a.Name(), b.Name()) }
	for _, n := range slices.SortedFunc(s.store.Model().Cache.Nodes.All(), byName) {
		if n.Room().Covers(p.Request) {
			return n.Name()
		}
	}
	return "n1"
}

// endNodeBoundCycle ends a cycle of a node-bound pod as PostFilter does.
func (s *script) endNodeBoundCycle(p *objects.Pod) string {
	judged := s.store.CheckQuota(p.UID)
	if !p.Foreign && !judged.OK() {
		s.store.QuotaRefused(p.UID, s.now)
	}
	text, held, why := s.planNodeBound(p)
	switch {
	case held, p.Foreign:
	case !judged.OK() || why.Code == reasons.OverMax:
		s.store.QuotaRefused(p.UID, s.now)
	default:
		s.store.NoNode(p.UID, "class", reasons.New(reasons.NoNodeFits, "0 of 1 nodes fit"), s.now)
	}
	return text
}

func (s *script) planNodeBound(p *objects.Pod) (text string, held bool, why reasons.Reason) {
	input := s.there
	if input == nil {
		input, why = s.store.BeginNodeBoundPlan(p.UID, nil, s.now)
	}
	if s.there = nil; input == nil {
		return "no decision: " + why.String(), false, why
	}
	params := input.Params
	if s.unfit[input.Node.Name] {
		params.Fits = func([]*planner.Pod) planner.Fit { return planner.Fails }
	}
	d := daemonset.Plan(input.Node, input.Ask, params)
	held, why = s.store.ApplyPlan(p.UID, &d, s.now)
	var names []string
	for _, v := range d.Victims {
		names = append(names, v.Name)
	}
	state := map[bool]string{true: "holds", false: "holds nothing"}[held]
	return fmt.Sprintf("%s, victims [%s], %s: %s", d.Outcome, strings.Join(names, " "), state, why), held, why
}

func (s *script) may(node string, names []string) string {
	var b strings.Builder
	for _, name := range names {
		p := s.pods[name]
		answer := "yes"
		if pass := s.store.Holds().MayUse(node, reservations.Pod{UID: p.UID, Namespace: p.Namespace, Group: objects.GroupOf(p.Namespace, p.Labels), Required: p.RequiredNode == node}); !pass.OK {
			answer = "no, for " + pass.Holder.Name
		}
		fmt.Fprintf(&b, "%s: %s\n", name, answer)
	}
	return b.String()
}

func (s *script) commit(p *objects.Pod) string {
	going, why := s.store.Commit(p.UID, nil, s.now)
	if !why.None() {
		return "off: " + why.String()
	}
	var names []string
	for _, v := range going {
		name := v.Name + " of " + cmp.Or(v.Queue, "no queue")
		if !strings.HasPrefix(v.Note, reservations.VictimMessage) {
			name += fmt.Sprintf(" with the message %q, by which it is not known", v.Note)
		}
		if v.Grace > 0 { // the script set one
			name += " within " + v.Grace.String()
		}
		names = append(names, name)
	}
	return fmt.Sprintf("to go: [%s]", strings.Join(names, ", "))
}

var workNames = [...]string{"delete-victims", "record", "release", "tell", "inquire"}

func (s *script) work() string {
	var b strings.Builder
	for _, w := range s.store.TakeWork() {
		fmt.Fprintf(&b, "%s %s: node %s, chosen %v, waits for %v", workNames[w.Kind], w.Name, w.Hold.Node, w.Hold.Chosen, w.Hold.Awaited)
		if w.Kind == output.WorkRelease {
			fmt.Fprintf(&b, ": %s: %s", w.Ended, w.Reason)
		}
		if w.Kind == output.WorkTell && !w.Reason.None() {
			fmt.Fprintf(&b, ": %s", w.Reason)
		}
		if w.Kind == output.WorkRecord && w.Hold.Patient() {
			fmt.Fprintf(&b, ": %s", w.Hold.Note)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func (s *script) preemption(t *testing.T, d *datadriven.TestData) {
	o, most := store.DefaultPreemption(), new(int32)
	there := &o.NodeBoundParams
	scan(t, d, d.CmdArgs, map[string]any{
		"retry": &o.RetryInterval, "round": &o.Round, "most": &o.MaxVictims, "strict": &o.StrictGuarantee,
		"timeout": &o.HoldTimeout, "grace": &o.MaxVictimGrace, "start-delay": &there.StartDelay,
		"max-victims": most, "foreign": &there.PreemptForeign, "namespaces": &there.Namespaces,
	})
	if d.HasArg("max-victims") {
		there.MaxVictims = most
	}
	s.store.SetPreemption(o)
	s.due, _ = s.store.NextDeadline() // a process sets its options before there is a deadline
}

func (s *script) holds() string {
	var lines []string
	for _, x := range s.explained() {
		if h := x.Hold; h != nil {
			lines = append(lines, fmt.Sprintf("%s holds %s for %v, waits for %v\n", x.Pod.Name, h.Node, h.Chosen, h.Awaited))
		}
		if x.ChosenBy != nil {
			lines = append(lines, fmt.Sprintf("%s is to go for %s\n", x.Pod.Name, x.ChosenBy.UID))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// until prints when each hold ends, as readers are told, if its asker does not start.
func (s *script) until() string {
	for s.readers.copy.bite(s.store, 100) {
	}
	rest := s.readers.copy.rest
	var b strings.Builder
	for _, h := range rest.Holds.All() {
		in := "never"
		if at, ok := rest.Until[h.Asker]; ok {
			in = at.Sub(s.now).String()
		}
		fmt.Fprintf(&b, "%s in %s\n", h.Name, in)
	}
	return b.String()
}

func refused(names []string) (out []output.Undeletable) {
	for _, v := range names {
		out = append(out, output.Undeletable{UID: types.UID(v), Why: "webhook denied the request"})
	}
	return out
}

func (s *script) keepsOff(node string) string {
	switch asker, ready := s.store.KeepsOff(node); {
	case !ready:
		return "not known"
	case asker == "":
		return "nothing"
	default:
		return string(asker)
	}
}
