package documents

import (
	"regexp"
	"strconv"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// PartitionRules are the placement rules of a partition, in a dump.
type PartitionRules struct {
	Partition string `json:"partition"`
	Rules     []Rule `json:"rules"`
}

// Rule is a placement rule as YuniKorn's interface shows it.
type Rule struct {
	Name       string            `json:"name"`
	Parameters map[string]string `json:"parameters,omitempty"`
	ParentRule *Rule             `json:"parentRule,omitempty"`
	Filter     *Filter           `json:"filter,omitempty"`
}

// Filter is the filter of a rule.
type Filter struct {
	Type      string   `json:"type"`
	UserList  []string `json:"userList,omitempty"`
	GroupList []string `json:"groupList,omitempty"`
	UserExp   string   `json:"userExp,omitempty"`
	GroupExp  string   `json:"groupExp,omitempty"`
}

// RulesOf shows the rules of a configuration, those it implies included.
func RulesOf(spec *config.Spec) []Rule {
	rules := spec.Rules
	if len(rules) == 0 {
		rules = []config.Rule{{Kind: config.RuleProvided}}
	}
	out := make([]Rule, 0, len(rules)+1)
	for i := range rules {
		out = append(out, *ruleOf(&rules[i]))
	}
	return append(out, Rule{Name: "recovery", Parameters: map[string]string{"queue": queues.RecoveryPath}})
}

func ruleOf(r *config.Rule) *Rule {
	out := &Rule{Name: string(r.Kind), Parameters: map[string]string{"create": strconv.FormatBool(r.Create)}, Filter: filterOf(r.Filter)}
	switch r.Kind {
	case config.RuleTag:
		out.Parameters["tagName"] = r.Value
	case config.RuleFixed:
		out.Parameters["queue"] = r.Value
		out.Parameters["qualified"] = strconv.FormatBool(config.Qualified(r.Value))
	}
	if r.Parent != nil {
		out.ParentRule = ruleOf(r.Parent)
	}
	return out
}

func filterOf(f config.Filter) *Filter {
	if f.Empty() {
		return nil
	}
	kind := "allow"
	if f.Deny {
		kind = "deny"
	}
	return &Filter{Type: kind, UserList: f.Users, GroupList: f.Groups, UserExp: expression(f.UserExp), GroupExp: expression(f.GroupExp)}
}

func expression(e *regexp.Regexp) string {
	if e == nil {
		return ""
	}
	return e.String()
}
