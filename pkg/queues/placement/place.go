package placement

import (
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Tree is what placement needs to know of the live queues. Paths are full and
// in lower case. The root always exists, and so does every ancestor of a queue
// that exists; the answers must not change during one call of [Place].
type Tree interface {
	// Queue returns a queue and whether it exists.
	Queue(path string) (QueueInfo, bool)
	// MaySubmit tells for an existing queue whether the submit or admin list of
	// it, or of an ancestor, has the user or one of the groups.
	MaySubmit(path string, user string, groups []string) bool
}

// QueueInfo is the state of one existing queue.
type QueueInfo struct {
	// Leaf is true for a queue that holds applications.
	Leaf bool
	// Draining is true for a queue that left the configuration and takes nothing new.
	Draining bool
}

// Request is a pod, or an application's first pod, that wants a queue.
type Request struct {
	Identity  Identity
	Namespace Namespace
	// Running is true for a pod that has a node already: it is placed in any case.
	Running bool
}

// Result is where a pod belongs.
type Result struct {
	// Path is the full path of the leaf, in lower case; empty when refused.
	Path string
	// Create is true if the leaf does not exist and the caller must make it as a dynamic
	// queue, with its missing parents.
	Create bool
	// Rule names what decided: "provided", "tag namespace", "fixed root.a",
	// "default queue" or "recovery"; empty when refused.
	Rule string
	// Trace has every rule that was tried, in order; the last one decided.
	Trace []Step
}

// Step is one rule that was tried.
type Step struct {
	// Rule names the rule as in [Result].
	Rule string
	// Queue is the full path the rule gave; empty when it gave none.
	Queue string
	// Code and Why say why the queue was not taken; empty for the step that
	// decided. A rule that did not apply has NoPlacementRuleMatched.
	Code reasons.Code
	Why  string
}

// Names of the steps that are not rules of queues.yaml.
const (
	stepDefault  = "default queue"
	stepRecovery = "recovery"
)

// attempt is one call of Place.
type attempt struct {
	req   Request
	tree  Tree
	trace []Step
}

// Place asks the rules, in order, for the queue of a pod, then takes
// [DefaultQueue], then, for a running pod, [RecoveryQueue]. Without rules the
// pod's own queue name counts, and must exist. Either the result has a Path, or
// the reason says what to correct; Trace is filled in both cases. A running pod
// is never refused.
func Place(rules []config.Rule, req Request, tree Tree) (Result, reasons.Reason) {
	if len(rules) == 0 {
		rules = []config.Rule{{Kind: config.RuleProvided}}
	}
	a := attempt{req: req, tree: tree, trace: make([]Step, 0, len(rules)+2)}
	for i := range rules {
		path, create, v := a.ask(&rules[i])
		a.note(ruleName(&rules[i]), path, v)
		switch {
		case v.ok():
			return a.placed(path, create), reasons.Reason{}
		case v.final && !req.Running:
			return Result{Trace: a.trace}, refusal(a.trace, i)
		}
	}
	v := a.checkDefault()
	a.note(stepDefault, DefaultQueue, v)
	if v.ok() {
		return a.placed(DefaultQueue, false), reasons.Reason{}
	}
	if req.Running {
		a.note(stepRecovery, RecoveryQueue, verdict{})
		_, exists := tree.Queue(RecoveryQueue)
		return a.placed(RecoveryQueue, !exists), reasons.Reason{}
	}
	return Result{Trace: a.trace}, refusal(a.trace, mostTelling(a.trace, req.Identity.Queue != ""))
}

// ask returns the queue that a rule gives, and whether the caller must make it. The path may
// be set even if the verdict refuses it.
func (a *attempt) ask(rule *config.Rule) (path string, create bool, v verdict) {
	if path, v = a.evaluate(rule); v.ok() {
		create, v = a.checkQueue(path)
	}
	return path, create, v
}

func (a *attempt) note(rule, path string, v verdict) {
	a.trace = append(a.trace, Step{Rule: rule, Queue: path, Code: v.code, Why: v.why})
}

func (a *attempt) placed(path string, create bool) Result {
	return Result{Path: path, Create: create, Rule: a.trace[len(a.trace)-1].Rule, Trace: a.trace}
}
