package config

import (
	"regexp"
	"strings"
)

// filter checks the filter of a rule. A list is one regular expression or
// plain names: a single entry that is not a plain name is the expression.
func (r *report) filter(at place, raw rawFilter) Filter {
	at = at.at("filter")
	var out Filter
	switch strings.ToLower(raw.kind.value) {
	case "", "allow": // also where it could not be read
	case "deny":
		out.Deny = true
	default:
		r.errorf(at.at("type"), raw.kind.line, "%s is not a type of filter: use allow or deny", quote(raw.kind.value))
	}
	out.Users, out.UserExp = r.filterList(at.at("users"), raw.users, userName)
	out.Groups, out.GroupExp = r.filterList(at.at("groups"), raw.groups, groupName)
	if out.Deny && out.Empty() && len(raw.users) == 0 && len(raw.groups) == 0 {
		r.warnf(at, raw.kind.line, "has no effect: a filter without users and groups allows everybody, also with type deny")
	}
	return out
}

func (r *report) filterList(at place, list []text, name *regexp.Regexp) ([]string, *regexp.Regexp) {
	if len(list) == 1 && list[0].broken {
		return nil, nil
	}
	if len(list) == 1 && list[0].value != "" && !name.MatchString(list[0].value) {
		expression, err := regexp.Compile(list[0].value)
		if err != nil {
			r.errorf(at.index(0), list[0].line, "%s is neither a name nor a regular expression: %v", quote(list[0].value), err)
		}
		return nil, expression
	}
	var names []string
	for i, t := range list {
		if !t.broken && !name.MatchString(t.value) {
			r.errorf(at.index(i), t.line, "%s is not a name; a regular expression must stand alone in the list", quote(t.value))
		}
		names = append(names, t.value)
	}
	return names, nil
}
