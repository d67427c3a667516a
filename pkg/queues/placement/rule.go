package placement

import (
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// ruleName is how traces and sentences call a rule: "user", "tag namespace".
func ruleName(rule *config.Rule) string {
	if rule.Value == "" {
		return string(rule.Kind)
	}
	return string(rule.Kind) + " " + rule.Value
}

// evaluate returns the full path a rule gives, in lower case, or why it gives none. It looks at the
// tree only as far as the rule itself asks for it (create, leaf as parent), not
// at whether the queue may be used; see checkQueue.
func (a *attempt) evaluate(rule *config.Rule) (string, reasons.Reason) {
	name, why := a.value(rule)
	if !why.None() {
		return "", why
	}
	if user := a.req.Identity.User; !allows(rule.Filter, user) {
		return "", reasons.New(reasons.NoPlacementRuleMatched, "the rule's filter keeps out %s", userText(user))
	}
	path, why := a.pathOf(rule, strings.ToLower(name))
	if !why.None() {
		return "", why
	}
	if err := checkPath(path); err != nil {
		return "", reasons.New(reasons.InvalidQueueName, "queue name %s is not valid: %v", quote(path), err)
	}
	if queues.Within(path, queues.RecoveryPath) {
		return path, reasons.New(reasons.PlacementRuleFailed, "queue %s is reserved for running pods that no rule can place", queues.RecoveryPath)
	}
	if _, exists := a.tree.Find(path); !exists && !rule.Create {
		return path, reasons.New(reasons.QueueNotFound, "queue %s does not exist and the rule may not create it%s", shown(path), dotHint(rule, name))
	}
	return path, reasons.Reason{}
}

// dotHint helps users that take "team.etl" for a path.
func dotHint(rule *config.Rule, name string) string {
	if rule.Kind != config.RuleProvided || !strings.Contains(name, ".") || config.Qualified(strings.ToLower(name)) {
		return ""
	}
	return ` (a name with dots is a path only if it starts with "root.")`
}

// value returns what the rule takes for a name: never empty without a reason.
func (a *attempt) value(rule *config.Rule) (string, reasons.Reason) {
	var name, missing string
	switch rule.Kind {
	case config.RuleProvided:
		name, missing = a.req.Identity.Queue, "the pod names no queue"
	case config.RuleUser:
		name, missing = a.req.Identity.User.Name, "the pod has no user"
	case config.RuleTag:
		name, missing = a.req.tag(rule.Value), "tag "+rule.Value+" has no value"
	case config.RuleFixed:
		name, missing = rule.Value, "the rule has no value"
	default:
		return "", reasons.New(reasons.PlacementRuleFailed, "rule %s is not known", quote(string(rule.Kind)))
	}
	if name == "" {
		return "", reasons.New(reasons.NoPlacementRuleMatched, "%s", missing)
	}
	return name, reasons.Reason{}
}

// pathOf completes a name in lower case to a full path. A name that is a full
// path already leaves the parent rule aside; a user name never is one.
func (a *attempt) pathOf(rule *config.Rule, name string) (string, reasons.Reason) {
	fixed := rule.Kind == config.RuleFixed
	if rule.Kind != config.RuleUser && config.Qualified(name) || fixed && name == config.RootName {
		return name, reasons.Reason{}
	}
	if !fixed {
		name = config.EscapeDots(name)
	}
	if rule.Parent == nil {
		return config.RootName + "." + name, reasons.Reason{}
	}
	parent, why := a.evaluate(rule.Parent)
	if !why.None() {
		why.Text = "parent rule " + ruleName(rule.Parent) + ": " + why.Text
		return "", why
	}
	if q, exists := a.tree.Find(parent); exists && q.Leaf {
		return "", reasons.New(reasons.PlacementRuleFailed, "parent rule %s gives %s, a leaf queue, which cannot have children",
			ruleName(rule.Parent), shown(parent))
	}
	return parent + "." + name, reasons.Reason{}
}

// annotationOf has the annotations that tag rules read, by tag. Tag "namespace" is the name of
// the namespace.
var annotationOf = map[string]string{
	"namespace.parentqueue":        KeyParentQueue,
	"namespace.resourcequota":      KeyNamespaceMax,
	"namespace.resourceguaranteed": KeyNamespaceGuaranteed,
	"namespace.resourcemaxapps":    KeyNamespaceMaxApps,
}

// tag returns the value of a tag; its name is lower case. It is empty if the tag is not set. All tags
// are of the namespace, so that no user can place a pod by claiming another namespace.
func (r Request) tag(name string) string {
	if name == "namespace" {
		return r.Namespace.Name
	}
	return r.Namespace.Annotations[annotationOf[name]] // no annotation has an empty name
}

// allows tells whether a filter lets a user pass. A user that is listed, by name or by
// one of the groups, is let in by an allow filter and kept out by a deny filter.
func allows(f config.Filter, user User) bool {
	if f.Empty() {
		return true
	}
	listed := f.UserExp != nil && f.UserExp.MatchString(user.Name) || slices.Contains(f.Users, user.Name)
	for _, g := range user.Groups {
		listed = listed || f.GroupExp != nil && f.GroupExp.MatchString(g) || slices.Contains(f.Groups, g)
	}
	return listed != f.Deny
}
