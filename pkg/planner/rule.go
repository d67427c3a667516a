package planner

// Rule names the rule by which a pod was no candidate, or an asker could not preempt.
type Rule string

// The rules. Laws are numbered as in docs/laws.md.
const (
	Law2             Rule = "law 2"
	Law3             Rule = "law 3"
	Law4             Rule = "law 4"
	Law5             Rule = "law 5"
	Law6             Rule = "law 6"
	Law7             Rule = "law 7"
	RuleDisabled     Rule = "preemption.policy disabled"
	RuleDaemonSet    Rule = "pod of a DaemonSet"
	RuleStatic       Rule = "static pod"
	RuleLeaving      Rule = "leaving already"
	RuleLingering    Rule = "leaving, and there for longer than a hold"
	RuleRefused      Rule = "its deletion was refused"
	RuleTooSlow      Rule = "of its own namespace, which may not close the node for that long any more (D4)"
	RuleBinding      Rule = "being bound"
	RuleForeign      Rule = "foreign pod"
	RuleNotNeeded    Rule = "frees nothing that is needed"
	RuleTooLittle    Rule = "all that may go is not enough"
	RuleFilters      Rule = "the node's filters refuse"
	RuleExtender     Rule = "an extender does not answer"
	RuleNoQueue      Rule = "the queue is gone"
	RuleNeverPreempt Rule = "preemptionPolicy Never"
)
