package config

import "strings"

// rules checks the placement rules and gives those that are good.
func (r *report) rules(raw []*rawRule) []Rule {
	var out []Rule
	for _, rule := range raw {
		out = append(out, r.rule(rule))
	}
	return out
}

// rule checks one rule and its parents.
func (r *report) rule(raw *rawRule) Rule {
	at := place{path: raw.path}
	out := Rule{
		Kind:   RuleKind(strings.ToLower(raw.name.value)),
		Create: raw.create,
		Filter: r.filter(at, raw.filter),
	}
	if raw.parent != nil {
		parent := r.rule(raw.parent)
		out.Parent = &parent
	}
	line := max(raw.line, raw.name.line)
	if raw.name.broken || raw.value.broken {
		return out
	}
	switch out.Kind {
	case RuleProvided, RuleUser:
		if raw.value.value != "" {
			r.warnf(at.at("value"), raw.value.line, "has no effect: a rule %s takes no value", out.Kind)
		}
	case RuleTag:
		out.Value = strings.ToLower(strings.TrimSpace(raw.value.value))
		if out.Value == "" {
			r.errorf(at.at("value"), line, "a rule tag needs the name of a tag as value, such as namespace")
		}
	case RuleFixed:
		out.Value = r.fixed(at, raw, line)
	case "recovery":
		r.errorf(at.at("name"), line, "the rule recovery is always there and cannot be configured: remove it")
	default:
		r.errorf(at.at("name"), line, "there is no rule %s: use provided, user, tag or fixed", quote(raw.name.value))
	}
	return out
}

// fixed checks the queue of a fixed rule and returns it in lower case.
func (r *report) fixed(at place, raw *rawRule, line int) string {
	at = at.at("value")
	value := strings.ToLower(strings.TrimSpace(raw.value.value))
	line = max(line, raw.value.line)
	switch bad, ok := badSegment(value); {
	case value == "":
		r.errorf(at, line, "a rule fixed needs the name of a queue as value")
	case value == RootName:
		r.errorf(at, line, "a rule fixed cannot place into root itself: name a queue below it")
	case !ok:
		r.errorf(at, line, "%s is not the path of a queue: %s is not a queue name: %s", quote(value), quote(bad), queueNameAdvice)
	case Qualified(value) && raw.parent != nil:
		r.errorf(at, line, "%s starts with root., so the rule must not have a parent", quote(value))
	}
	return value
}

// badSegment returns the first part of a path that is no queue name.
func badSegment(path string) (string, bool) {
	for part := range strings.SplitSeq(path, ".") {
		if !ValidQueueName(part) {
			return part, false
		}
	}
	return "", true
}
