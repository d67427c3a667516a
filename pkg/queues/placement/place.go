package placement

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

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
	// Refusal says why the queue was not taken; none for the step that decided. A rule
	// that did not apply has NoPlacementRuleMatched.
	Refusal reasons.Reason
}

// Names of the steps that are not rules of queues.yaml.
const (
	stepDefault  = "default queue"
	stepRecovery = "recovery"
)

// attempt is one call of Place.
type attempt struct {
	req   Request
	tree  *queues.Draft
	trace []Step
}

// Place asks the rules, in order, for the queue of a pod, then takes
// [DefaultQueue], then, for a running pod, [queues.RecoveryPath]. Without rules the
// pod's own queue name counts, and must exist. Either the result has a Path, or
// the reason says what to correct; Trace is filled in both cases. A running pod
// is never refused.
func Place(rules []config.Rule, req Request, tree *queues.Draft) (Result, reasons.Reason) {
	if len(rules) == 0 {
		rules = []config.Rule{{Kind: config.RuleProvided}}
	}
	a := attempt{req: req, tree: tree, trace: make([]Step, 0, len(rules)+2)}
	for i := range rules {
		path, create, why := a.ask(&rules[i])
		a.note(ruleName(&rules[i]), path, why)
		switch {
		case why.None():
			return a.placed(path, create), reasons.Reason{}
		case final(why.Code) && !req.Running:
			return Result{Trace: a.trace}, refusal(a.trace, i)
		}
	}
	why := a.checkDefault()
	a.note(stepDefault, DefaultQueue, why)
	if why.None() {
		return a.placed(DefaultQueue, false), reasons.Reason{}
	}
	if req.Running {
		a.note(stepRecovery, queues.RecoveryPath, reasons.Reason{})
		_, exists := tree.Find(queues.RecoveryPath)
		return a.placed(queues.RecoveryPath, !exists), reasons.Reason{}
	}
	return Result{Trace: a.trace}, refusal(a.trace, mostTelling(a.trace, req.Identity.Queue != ""))
}

// ask returns the queue that a rule gives, and whether the caller must make it. The path may
// be set even if there is a reason why it is not taken.
func (a *attempt) ask(rule *config.Rule) (path string, create bool, why reasons.Reason) {
	if path, why = a.evaluate(rule); why.None() {
		create, why = a.checkQueue(path)
	}
	return path, create, why
}

// final tells whether no further rule is tried after a refusal: the rule's result can never
// be right, and a later rule would only hide the mistake.
func final(code reasons.Code) bool {
	return code == reasons.InvalidQueueName || code == reasons.PlacementRuleFailed
}

func (a *attempt) note(rule, path string, why reasons.Reason) {
	a.trace = append(a.trace, Step{Rule: rule, Queue: path, Refusal: why})
}

func (a *attempt) placed(path string, create bool) Result {
	return Result{Path: path, Create: create, Rule: a.trace[len(a.trace)-1].Rule, Trace: a.trace}
}
