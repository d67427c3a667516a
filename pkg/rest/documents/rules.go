package documents

import (
	"regexp"
	"strconv"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// Rules writes the placement rules in force, those that the configuration implies included.
func (p *JSONWriter) Rules(v *inventory.View) {
	rules := v.Spec.Rules
	if len(rules) == 0 {
		rules = []config.Rule{{Kind: config.RuleProvided}}
	}
	p.Open('[')
	for i := range rules {
		p.rule(&rules[i])
	}
	p.Open('{')
	p.TextField("name", "recovery")
	p.Field("parameters", map[string]string{"queue": queues.RecoveryPath})
	p.Close('}')
	p.Close(']')
}

func (p *JSONWriter) rule(r *config.Rule) {
	parameters := map[string]string{"create": strconv.FormatBool(r.Create)}
	switch r.Kind {
	case config.RuleTag:
		parameters["tagName"] = r.Value
	case config.RuleFixed:
		parameters["queue"] = r.Value
		parameters["qualified"] = strconv.FormatBool(config.Qualified(r.Value))
	}
	p.Open('{')
	p.TextField("name", string(r.Kind))
	p.Field("parameters", parameters)
	if r.Parent != nil {
		p.Key("parentRule")
		p.rule(r.Parent)
	}
	if !r.Filter.Empty() {
		p.Key("filter")
		p.filter(r.Filter)
	}
	p.Close('}')
}

func (p *JSONWriter) filter(f config.Filter) {
	kind := "allow"
	if f.Deny {
		kind = "deny"
	}
	p.Open('{')
	p.TextField("type", kind)
	p.TextsField("userList", f.Users)
	p.TextsField("groupList", f.Groups)
	p.TextField("userExp", expression(f.UserExp))
	p.TextField("groupExp", expression(f.GroupExp))
	p.Close('}')
}

func expression(e *regexp.Regexp) string {
	if e == nil {
		return ""
	}
	return e.String()
}
