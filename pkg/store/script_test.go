package store_test

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/queues/unmet"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// TestScripts runs the files of testdata: each is the history of one store.
//
// The configuration:
//
//	store [window=N] [max-window=N] [lease=D] [backoff=D] [max-backoff=D] [grace=D] [podgroups] [started]
//	      [standby] [queues=N] [queues-of-namespace=N]
//	rule: provided create
//	root
//	  a max.vcore=2
//	----
//
// makes a store with placement rules (see queuestest.Rules; without any: provided)
// and queues (see queuestest.Tree). With started, Start is called at once.
//
//	reload                      the same input replaces the configuration
//	start                       ends the phase before Start
//	not-ready                   the input is the reason why the store does not start
//	namespace NAME              sets the annotations of the input, KEY=VALUE a line,
//	                            without "yunikorn.apache.org/"; prints what is wrong
//	delete-namespace NAME
//	podgroup NAME MEMBERS       delete-podgroup NAME
//	budget NAME [tier=T] [allowed=N] [healthy=N] [desired=N] [generation=N] [observed=N]
//	       [always-allow] [disrupted=NAME,NAME]
//	                            a budget of namespace ns; delete-budget NAME
//	node NAME vcore=N ...       delete-node NAME
//
// Events of pods. The script remembers the settings of a pod and repeats those that are not given again:
//
//	upsert
//	NAME [ns=NAME] [queue=NAME] [app=NAME] [user=NAME] [groups=G,G] [prio=N]
//	     [age=SECONDS] [node=NAME] [gated] [told=CODE] [deleting] [done] [hard-gang] [soft-gang] [TYPE=AMOUNT] [types=N]
//	     [group=NAME] [foreign] [scheduler=NAME] [controller=NAME] [peer] [requires=NODE] [owner=NAME] [opted-out] [never] [claim=NODE:VICTIM,VICTIM [since=D]]
//	     [tier=T] [preempted] [grace=D] [stays=D] [unready] [not-started] [originator] [!originator] [role]
//	----
//
// one event a line; "!gated" takes a flag away, "node=" unbinds. Defaults: ns=ns, app=the
// pod's name, no user (placement.UnknownUser), vcore=1. Every pod has pods=1.
//
//	delete NAME ...
//	delete-unseen NAME ...      gone, and the pod was never seen on its node
//	freed-unseen [gone|NAME]    prints the pods that were deleted so; a cycle sees that they are
//	                            gone, or finds one still on its node and NAME comes back
//
// Steps of the scheduler, each for one or more pods in turn:
//
//	gate judge assume assume-empty forget failed failed-class refused defer explain NAME ...
//
// and bind NAME ..., which is the event that a pod runs on its assumed node. With assume-empty
// the snapshot of the scheduler has no pod on the node.
//
// Preemption, see package holds:
//
//	failed-plan NAME ...        a cycle that found no node, as PostFilter ends it: plans,
//	                            claims or declines, and prints the result
//	failed-plan-class NAME ...  the same for pods of one equivalence class, as failed-class
//	failed-there NAME ...       the same for node-bound pods
//	begin-plan NAME             begins the plan that the next failed-plan or failed-there
//	                            goes on with
//	at-permit [NAME ...]        the pods that plans find waiting at Permit
//	port [NAME]                 the filters pass on no node that keeps this pod
//	commit NAME ...             prints the pods to delete
//	victims-deleted NAME ...    fail-plan NAME ...
//	refuse ASKER NAME ...       the API server refused to delete the pods, and the plan fails
//	refuse-once NAME ...        the same, and the plan goes on
//	kubelet-refused NAME ...    or ended-otherwise: how the executor finds that pods ended
//	may NODE NAME ...           prints whether pods may use a node, or which pod prevents it
//	work                        prints what the executor has to write
//	keeps-off NODE              prints for which asker other schedulers are kept off
//	goes-first NODE             prints the pods that go first there, and whether any node has such pods
//	vacated                     prints the nodes that may be tried again
//	lead                        this process leads from now on; see "store ... standby"
//	preemption [retry=D] [round=D] [most=N] [strict] [timeout=D] [grace=D] [start-delay=D]
//	           [max-victims=N] [foreign] [namespaces=(NS,...)]
//	node-changed NAME           the taints of a node changed
//	node-refuses POD...         the filters refuse node n1, which they hold, for any victims
//	cordon NAME | uncordon NAME a node takes no new pods, or takes them again
//	unfit [NAME ...]            nodes where the filters refuse plans, for any victims
//
// The rest:
//
//	tick D                      advances the time and calls Tick; wait D does not call it
//	reports [N]                 prints the reports that are due, at most N
//	show pods|usage|settings|window|limits|holds|until|gated|demand|originators
//	look                        prints which queues have lawful unmet demand now, how long
//	                            ended unmet demand of other queues lasted, and the sums
//	                            so far
//	recount                     compares the store with the script's pods
//
// Every command also prints the pods that it admits ("admitted: ..."), and a line that
// begins with !! if the store is inconsistent.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		if filepath.Ext(file) != ".txt" {
			return // rapid keeps failed cases there
		}
		datadriven.RunTest(t, file, new(script).do)
	})
}

type script struct {
	store   *store.Store
	now     time.Time
	pods    map[string]*objects.Pod
	known   map[types.UID]bool          // all pods so far, with those that are gone
	nodes   map[string]resources.Vector // allocatable by node
	unfit   map[string]bool             // nodes where the filters refuse
	port    string                      // a pod that filters want to go
	permit  []types.UID                 // pods that wait at Permit
	input   *output.PlanInput           // a plan that has begun
	there   *output.NodeBoundPlanInput  // the same for a node-bound pod
	due     time.Time                   // the deadline that was returned last; zero for none
	meter   unmet.Meter
	unmet   map[unmet.Demand]time.Duration // so far
	readers *readers
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newPod is a pod that waits in a queue, created at epoch.
func newPod(name, queue, app string, request resources.Vector) objects.Pod {
	return objects.Pod{
		Identity: objects.Identity{
			UID: types.UID(name), Namespace: "ns", Name: name, Created: epoch,
			Labels: map[string]string{placement.KeyQueue: queue, placement.KeyApplicationID: app},
		},
		Request: request,
	}
}

func (s *script) begin(t *testing.T, d *datadriven.TestData) {
	var o store.Options
	started, follows, made := false, false, &o.DynamicQueues
	scan(t, d, d.CmdArgs, map[string]any{
		"window": &o.Window, "max-window": &o.MaxWindow, "lease": &o.SlotLease, "grace": &o.QueueGrace,
		"backoff": &o.InitialBackoff, "max-backoff": &o.MaxBackoff, "queues": &made.Total,
		"queues-of-namespace": &made.PerNamespace, "standby": &o.Standby, "started": &started, "podgroups": &follows,
	})
	*s = script{store: store.New(specification(t, d.Input), o), now: epoch, pods: map[string]*objects.Pod{}, known: map[types.UID]bool{}, nodes: map[string]resources.Vector{}}
	s.meter, s.unmet, s.readers = unmet.Meter{}, map[unmet.Demand]time.Duration{}, newReaders(s.store)
	if follows {
		s.store.FollowPodGroups()
	}
	if started {
		s.store.Start(s.now)
	}
}

func (s *script) do(t *testing.T, d *datadriven.TestData) string { return s.after(s.run(t, d)) }

// scan reads arguments into the variables of their names. A flag has no value.
func scan(t *testing.T, d *datadriven.TestData, args []datadriven.CmdArg, into map[string]any) {
	t.Helper()
	for _, arg := range args {
		switch v := into[arg.Key].(type) {
		case nil:
			d.Fatalf(t, "unknown argument %s", arg.Key)
		case *bool:
			*v = true
		case *[]string:
			*v = arg.Vals
		default:
			arg.Scan(t, 0, v)
		}
	}
}

func specification(tb testing.TB, input string) *config.Spec {
	tb.Helper()
	var rules, tree []string
	for _, line := range strings.Split(input, "\n") {
		if rule, ok := strings.CutPrefix(line, "rule:"); ok {
			rules = append(rules, rule)
		} else {
			tree = append(tree, line)
		}
	}
	spec := queuestest.MustTree(tb, strings.Join(tree, "\n"))
	spec.Rules = expect.Get(queuestest.Rules(strings.Join(rules, "\n")))(tb)
	return spec
}

// after adds to the output of a command what all commands print.
func (s *script) after(out string) string {
	var b strings.Builder
	b.WriteString(out)
	if refs := s.takeActivations(&b); len(refs) > 0 {
		names := make([]string, len(refs))
		for i, r := range refs {
			names[i] = r.Name
		}
		fmt.Fprintf(&b, "admitted: %s\n", strings.Join(names, " "))
	}
	s.explainAll(&b) // must not change anything; otherwise scripts would print other output
	if err := s.readers.read(s.store); err != nil {
		fmt.Fprintf(&b, "!! readers: %v\n", err)
	}
	if err := s.store.Check(); err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			fmt.Fprintf(&b, "!! %s\n", line)
		}
	}
	return b.String()
}

// takeActivations works as the reader of Wake does. It prints where the reader is not told
// of pods that are let through, or of an earlier deadline.
func (s *script) takeActivations(w io.Writer) []objects.Ref {
	told := len(s.store.Wake()) > 0
	due, _ := s.store.NextDeadline()
	refs := s.store.TakeActivations()
	if earlier := !due.IsZero() && (s.due.IsZero() || due.Before(s.due)); !told && (earlier || len(refs) > 0) {
		fmt.Fprintf(w, "!! the reader of Wake is not told: due at %v, which was %v, let through: %v\n", due, s.due, refs)
	}
	s.due, _ = s.store.NextDeadline()
	for range len(s.store.Wake()) {
		<-s.store.Wake()
	}
	return refs
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	words := make([]string, len(d.CmdArgs))
	for i, arg := range d.CmdArgs {
		words[i] = arg.String()
	}
	switch d.Cmd {
	case "store":
		s.begin(t, d)
	case "start":
		s.store.Start(s.now)
	case "reload":
		spec := specification(t, d.Input)
		spec.PreemptionEnabled = !d.HasArg("preemption-disabled")
		s.store.Configure(spec, s.now)
	case "namespace":
		return s.namespace(words[0], d.Input)
	case "delete-namespace":
		s.store.DeleteNamespace(words[0], s.now)
	case "podgroup":
		s.store.SetPodGroup("ns", words[0], expect.Get(strconv.Atoi(words[1]))(t), s.now)
	case "delete-podgroup":
		s.store.SetPodGroup("ns", words[0], 0, s.now)
	case "node":
		s.nodes[words[0]] = queuestest.Vector(strings.Join(words[1:], " "))
		s.store.UpsertNode(words[0], s.nodes[words[0]], s.now)
	case "delete-node":
		delete(s.nodes, words[0])
		s.store.DeleteNode(words[0], s.now)
	case "upsert":
		var b strings.Builder
		for _, line := range strings.Split(d.Input, "\n") {
			p := *s.pod(t, d, strings.Fields(line))
			_, before := s.store.Explanation(p.UID, s.now)
			preview := s.store.DryRun(p, s.now)
			s.store.Upsert(p, s.now)
			s.comparePreview(&b, p.UID, preview, !before)
		}
		return b.String()
	case "too-early": // a cycle of pods that the store may not know yet
		var b strings.Builder
		for _, line := range strings.Split(d.Input, "\n") {
			p := s.pod(t, d, strings.Fields(line))
			_, why := s.store.BeginNodeBoundPlan(p.UID, nil, s.now)
			fmt.Fprintf(&b, "%s: %s\n", p.Name, why)
		}
		return b.String()
	case "tick", "wait":
		s.now = s.now.Add(expect.Get(time.ParseDuration(words[0]))(t))
		if d.Cmd == "tick" {
			s.store.Tick(s.now)
		}
	case "reports":
		return s.reports(words)
	case "show":
		return s.show(t, d, words[0])
	case "look":
		return s.look()
	case "recount":
		return s.recount()
	case "work":
		return s.work()
	case "keeps-off":
		return s.keepsOff(d.CmdArgs[0].Key)
	case "goes-first":
		var names []string
		if on := s.store.NodeBound(words[0]); on != nil {
			for _, p := range on.GoFirst(s.nodes[words[0]]) {
				names = append(names, string(p.UID))
			}
		}
		return fmt.Sprintln(names, s.store.AnyNodeBound())
	case "not-ready":
		s.store.SetNotReady(reasons.New(reasons.QueueNotFound, "%s", d.Input))
	case "vacated":
		return strings.Join(s.store.TakeVacated(), " ")
	case "lead":
		s.store.StartLeading(s.now)
	case "refuse": // the deletes of victims
		s.store.FailPlan(types.UID(words[0]), reasons.New(reasons.HoldGivenUp, "the API server refused"), refused(words[1:]), s.now)
	case "refuse-once":
		s.store.VictimsRefused(refused(words), s.now)
	case "cordon", "uncordon":
		s.store.SetNodeSchedulable(words[0], d.Cmd == "uncordon", s.now)
	case "unfit":
		s.unfit = map[string]bool{}
		for _, node := range words {
			s.unfit[node] = true
		}
	case "port":
		s.port = strings.Join(words, "")
	case "at-permit":
		s.permit = nil
		for _, name := range words {
			s.permit = append(s.permit, types.UID(name))
		}
	case "may":
		return s.may(words[0], words[1:])
	case "node-changed":
		s.store.NodeChanged(words[0], s.now)
	case "preemption":
		s.preemption(t, d)
	case "budget":
		s.store.UpsertBudget(scriptBudget(t, d), s.now)
	case "delete-budget":
		s.store.DeleteBudget("ns", words[0], s.now)
	case "freed-unseen":
		return s.freedUnseen(words)
	default:
		return s.steps(t, d, words)
	}
	return ""
}

func (s *script) namespace(name, input string) string {
	annotations := map[string]string{}
	for _, line := range strings.Split(input, "\n") {
		if key, value, ok := strings.Cut(line, "="); ok {
			annotations[placement.Domain+key] = value
		}
	}
	var b strings.Builder
	for _, err := range s.store.UpsertNamespace(name, annotations, s.now) {
		fmt.Fprintln(&b, err)
	}
	return b.String()
}

func (s *script) pod(t *testing.T, d *datadriven.TestData, words []string) *objects.Pod {
	name := words[0]
	p := s.pods[name]
	if p == nil {
		first := newPod(name, "", name, queuestest.Vector("vcore=1 pods=1"))
		first.Annotations = map[string]string{}
		p = &first
	}
	next := *p
	next.Labels, next.Annotations = maps.Clone(p.Labels), maps.Clone(p.Annotations)
	amounts := []string{"pods=1"}
	for _, word := range words[1:] {
		if n, ok := strings.CutPrefix(word, "types="); ok {
			many, _ := strconv.Atoi(n)
			for i := range many {
				amounts = append(amounts, fmt.Sprintf("example.com/t%d=1", i))
			}
		} else if !setPod(&next, word) {
			amounts = append(amounts, word)
		}
	}
	if len(amounts) > 1 {
		next.Request = queuestest.Vector(strings.Join(amounts, " "))
	}
	if next.Deleting && (!p.Deleting || next.DeletionGrace != p.DeletionGrace) {
		next.GoneBy = s.now.Add(next.DeletionGrace)
	}
	s.pods[name], s.known[next.UID] = &next, true
	return &next
}

func setPod(p *objects.Pod, word string) bool {
	key, value, _ := strings.Cut(word, "=")
	key, off := strings.CutPrefix(key, "!")
	flags := map[string]*bool{
		"preempted": &p.Preempted, "gated": &p.Gated, "done": &p.Terminal, "foreign": &p.Foreign, "never": &p.NeverPreempts,
	}
	texts := map[string]*string{"ns": &p.Namespace, "scheduler": &p.Scheduler, "requires": &p.RequiredNode}
	labels := map[string]string{
		"queue": placement.KeyQueue, "app": placement.KeyApplicationID, "user": placement.KeyUsername,
		"group": objects.PodGroupLabel, "tier": "tier",
	}
	switch {
	case flags[key] != nil:
		*flags[key] = !off
		return true
	case texts[key] != nil:
		*texts[key] = value
		return true
	case labels[key] != "":
		p.Labels[labels[key]] = value
		return true
	}
	switch key {
	case "groups":
		groups := strings.ReplaceAll(value, ",", `","`)
		p.Annotations[placement.KeyUserInfo] = fmt.Sprintf(`{"user":%q,"groups":["%s"]}`, p.Labels[placement.KeyUsername], groups)
	case "prio":
		_, _ = fmt.Sscan(value, &p.Priority)
	case "age":
		seconds, _ := strconv.Atoi(value)
		p.Created = epoch.Add(-time.Duration(seconds) * time.Second)
	case "node":
		p.Node, p.Health = value, objects.Ready
	case "grace":
		p.Grace, _ = time.ParseDuration(value)
	case "stays":
		p.DeletionGrace, _ = time.ParseDuration(value)
		p.Deleting = true
	case "unready":
		p.Health = map[bool]objects.Health{false: objects.Unready, true: objects.Ready}[off]
	case "not-started":
		p.Health = objects.NotStarted
	case "told":
		p.Told = reasons.Code(value)
	case "deleting":
		p.Deleting = !off
		if grace, err := time.ParseDuration(value); err == nil {
			p.GoneBy = epoch.Add(grace)
		}
	case "peer":
		p.Foreign, p.Peer = !off, !off
	case "controller":
		p.Controller = types.UID(value)
	case "owner":
		p.Owners = []types.UID{types.UID(value)}
	case "originator":
		if p.Originator = objects.OriginatorYes; off {
			p.Originator = objects.OriginatorNo
		}
	case "role":
		p.Originator = objects.OriginatorByRole
	case "opted-out":
		p.OptOut = objects.OptOutYes
	case "claim":
		p.Claim = nil
		if node, names, ok := strings.Cut(value, ":"); ok {
			p.Claim = &reservations.Claim{Node: node, Since: epoch}
			for _, name := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' }) {
				p.Claim.Victims = append(p.Claim.Victims, types.UID(name))
			}
		}
	case "since": // of the claim
		after, _ := time.ParseDuration(value)
		p.Claim.Since = epoch.Add(after)
	case "said": // what the condition PodScheduled says
		p.Demand = map[string]objects.DemandSaid{"wanted": objects.DemandWanted, "beyond": objects.DemandBeyond, "error": objects.DemandOther}[value]
	case "soft-gang":
		delete(p.Annotations, placement.KeyPolicyParameters)
		p.Annotations[placement.KeyTaskGroups] = `[{"name":"g","minMember":1}]`
	case "hard-gang":
		p.Annotations[placement.KeyTaskGroups] = `[{"name":"g","minMember":1}]`
		p.Annotations[placement.KeyPolicyParameters] = "gangSchedulingStyle=Hard"
	default:
		return false
	}
	return true
}

func (s *script) assume(p *objects.Pod, seen int) string {
	return yes("granted", s.store.Assume(p.UID, s.nodeFor(p), seen, s.now).Reason)
}

func (s *script) steps(t *testing.T, d *datadriven.TestData, names []string) string {
	var b strings.Builder
	for _, name := range names {
		p := s.pods[name]
		if p == nil {
			p = &objects.Pod{Identity: objects.Identity{UID: types.UID(name)}}
		}
		if answer := s.step(t, d, p); answer != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, answer)
		}
	}
	return b.String()
}

func (s *script) step(t *testing.T, d *datadriven.TestData, p *objects.Pod) string {
	st := s.store
	switch d.Cmd {
	case "gate":
		gate, why := st.Gate(p.UID, s.now), st.Explain(p.UID)
		if p.Foreign { // it enters again while it holds its node
			return yes("enters", gate)
		}
		if gate.Code != why.Code && why.Code != "" {
			return fmt.Sprintf("!! gate says %s and explain %s", gate.Code, why)
		}
		if why.None() { // not known
			why = gate
		}
		return yes("enters", why)
	case "judge":
		return yes("granted", st.CheckQuota(p.UID).Reason)
	case "assume":
		return s.assume(p, store.NoSnapshot)
	case "assume-empty":
		return s.assume(p, 0)
	case "forget":
		st.Forget(p.UID, s.now)
	case "failed", "failed-class":
		_, class, _ := strings.Cut(d.Cmd, "-")
		st.NoNode(p.UID, class, reasons.New(reasons.NoNodeFits, "0 of 3 nodes fit"), s.now)
	case "refused":
		st.QuotaRefused(p.UID, s.now)
	case "node-refuses":
		st.NodeRefuses(p.UID, "n1", "1 node(s) had untolerated taint", s.now)
	case "defer":
		st.Defer(p.UID, reasons.New(reasons.BackingOff, "a plugin refused to try the pod"), s.now)
	case "held-back":
		st.Defer(p.UID, reasons.New(reasons.SchedulingGated, "another plugin holds it back"), s.now)
	case "begin-plan":
		var why reasons.Reason
		if p.RequiredNode != "" {
			s.there, why = st.BeginNodeBoundPlan(p.UID, s.permit, s.now)
		} else {
			s.input, why = st.BeginPlan(p.UID, "", s.permit, s.now)
		}
		return yes("begins", why)
	case "failed-plan", "failed-plan-class":
		return s.plan(p, strings.TrimPrefix(strings.TrimPrefix(d.Cmd, "failed-plan"), "-"))
	case "failed-there":
		return s.endNodeBoundCycle(p)
	case "commit":
		return s.commit(p)
	case "victims-deleted":
		st.VictimsDeleted(p.UID, s.now)
	case "fail-plan":
		st.FailPlan(p.UID, reasons.New(reasons.HoldGivenUp, "the API server refused"), nil, s.now)
	case "kubelet-refused", "ended-otherwise":
		reason := map[string]string{"kubelet-refused": "OutOfcpu"}[d.Cmd]
		return st.KubeletRefused(p.UID, reason, s.now).String()
	case "abort-plan":
		st.AbortPlan(p.UID, reasons.New(reasons.HoldGivenUp, "a pod is being bound"), s.now)
	case "explain":
		return yes("let through or not known", st.Explain(p.UID))
	case "bind":
		p.Node = s.nodeFor(p)
		st.Upsert(*p, s.now)
	case "delete":
		st.Delete(p.UID, s.now)
		delete(s.pods, p.Name)
	case "delete-unseen":
		st.DeleteLastSeenPending(p.UID, s.now)
		delete(s.pods, p.Name)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return ""
}

func yes(word string, r reasons.Reason) string {
	if r.None() {
		return word
	}
	return r.String()
}

func (s *script) reports(words []string) string {
	limit := 100
	if len(words) > 0 {
		_, _ = fmt.Sscan(words[0], &limit)
	}
	var b strings.Builder
	for _, r := range s.store.NextReports(s.now, limit) {
		if r.Demand != objects.DemandUnsaid {
			fmt.Fprintf(&b, "%s: PodScheduled is %s: %s\n", r.Name, map[objects.DemandSaid]string{objects.DemandWanted: "Unschedulable", objects.DemandBeyond: "SchedulingGated"}[r.Demand], r.Reason)
			s.pods[r.Name].Demand = r.Demand
			s.store.Upsert(*s.pods[r.Name], s.now) // the written object arrives as an event
			continue
		}
		warning := map[bool]string{true: "warning: "}[r.Warning]
		fmt.Fprintf(&b, "%s: %s%s\n", r.Name, warning, yes("taken back", r.Reason))
	}
	return b.String()
}

func (s *script) show(t *testing.T, d *datadriven.TestData, what string) string {
	st := s.store
	switch what {
	case "pods":
		var b strings.Builder
		for _, x := range s.explained() {
			fmt.Fprintf(&b, "%s %s", x.Pod.Name, x.State)
			if x.App != nil {
				fmt.Fprintf(&b, " %s", x.App.Queue)
			}
			fmt.Fprintln(&b)
		}
		return b.String()
	case "usage":
		return queuestest.ShowUsage(st.Snapshot())
	case "settings":
		return queuestest.ShowSettings(st.Snapshot())
	case "window":
		next := "never"
		if at, ok := st.NextDeadline(); ok {
			next = at.Sub(s.now).String()
		}
		window := &st.Model().Pending.Window
		return fmt.Sprintf("%d of %d taken, next deadline in %s\n", window.Taken(), window.Slots(), next)
	case "limits":
		return s.limits()
	case "holds":
		return s.holds()
	case "until":
		return s.until()
	case "gated":
		return s.gated()
	case "demand":
		return s.demand()
	case "originators":
		return s.originators()
	case "tries":
		return s.tries()
	}
	d.Fatalf(t, "cannot show %s", what)
	return ""
}

// explained returns the explanations of all pods that the store knows, oldest first.
func (s *script) explained() (out []*store.Explanation) {
	for uid := range s.known {
		if x, known := s.store.Explanation(uid, s.now); known {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b *store.Explanation) int {
		return cmp.Or(a.Pod.Created.Compare(b.Pod.Created), cmp.Compare(a.Pod.UID, b.Pod.UID))
	})
	return out
}

// tries prints the pods that were let through, in the order of their sort keys.
func (s *script) tries() string {
	pods := s.explained()
	key := func(x *store.Explanation) store.Key {
		k, _ := s.store.Key(x.Pod.UID)
		return k
	}
	slices.SortFunc(pods, func(a, b *store.Explanation) int {
		return cmp.Or(cmp.Compare(key(b).Rank, key(a).Rank), cmp.Compare(key(a).Time, key(b).Time), cmp.Compare(key(a).Seq, key(b).Seq))
	})
	var b strings.Builder
	for _, x := range pods {
		if x.State == state.Admitted.String() || x.State == state.Scheduling.String() {
			fmt.Fprintf(&b, "%s rank %d\n", x.Pod.Name, key(x).Rank)
		}
	}
	return b.String()
}

func (s *script) demand() string {
	var b strings.Builder
	for _, p := range s.store.Model().SortedPods() {
		switch {
		case p.WithinQuota():
			fmt.Fprintf(&b, "%s wanted\n", p.Name)
		case !p.BeyondQuota().None():
			fmt.Fprintf(&b, "%s beyond: %s\n", p.Name, p.BeyondQuota())
		}
	}
	return b.String()
}

func (s *script) limits() string {
	var lines []string
	owners := map[queues.Owner]bool{}
	for _, x := range s.explained() {
		if a := x.App; a != nil {
			owners[queues.Owner{User: a.User}], owners[queues.Owner{Group: a.Group}] = true, true
		}
	}
	for q := range s.store.Snapshot().All() {
		for o := range owners {
			name, group := o.User+o.Group, o.Group != ""
			owner, _ := s.store.OwnersUse([]queues.Charged{{Queue: q.ID, Group: group, Name: name}})
			u := owner[0]
			if u.Allocated.IsZero() && u.Admitted.IsZero() && u.Running == 0 {
				continue
			}
			kind := map[bool]string{false: "user", true: "group"}[group]
			lines = append(lines, fmt.Sprintf("%s %s %s allocated{%s} admitted{%s} running=%d\n", q.Path, kind, name,
				amounts(u.Allocated), amounts(u.Admitted), u.Running))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func amounts(v resources.Vector) string { return queuestest.Amounts(v.All()) }

func (s *script) recount() string {
	var pods []objects.Pod
	for _, p := range s.pods {
		pods = append(pods, *p)
	}
	if err := s.store.CompareWith(pods); err != nil {
		return err.Error() + "\n"
	}
	return "as counted\n"
}
