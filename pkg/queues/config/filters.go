package config

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// expressionChars tell a regular expression from a misspelled name, as in YuniKorn.
const expressionChars = "^$*+?()[{}|"

// bytesOfStep is about what a step of a compiled expression takes.
const bytesOfStep = 64

// stepsOf is about how many steps an expression is compiled to: x{1000} has 1,000.
func stepsOf(e *syntax.Regexp) int {
	steps := 1 + len(e.Rune)
	for _, s := range e.Sub {
		steps += stepsOf(s)
	}
	return steps * max(1, e.Min, e.Max)
}

// filter checks the filter of a rule. A list is one regular expression or
// plain names: a single entry that is not a plain name is the expression. In a list
// of several, what is not a name is left out, as YuniKorn does.
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
	var noUser, noGroup bool
	out.Users, out.UserExp, noUser = r.filterList(at.at("users"), "user", raw.users, userName)
	out.Groups, out.GroupExp, noGroup = r.filterList(at.at("groups"), "group", raw.groups, groupName)
	out.NoNames = noUser || noGroup
	if out.Deny && out.Empty() && len(raw.users) == 0 && len(raw.groups) == 0 {
		r.warnf(at, raw.kind.line, "has no effect: a filter without users and groups allows everybody, also with type deny")
	}
	return out
}

// filterList checks one list of a filter; the kind is "user" or "group". none is true
// for a list of which no entry is a name.
func (r *report) filterList(at place, kind string, list []text, name *regexp.Regexp) (names []string, exp *regexp.Regexp, none bool) {
	if len(list) == 1 {
		names, exp = r.filterEntry(at.index(0), kind, list[0], name)
		return names, exp, false
	}
	for i, t := range list {
		switch {
		case t.broken: // reported before
		case name.MatchString(t.value):
			names = append(names, t.value)
		default:
			r.warnf(at.index(i), t.line, "%s is left out, it is not the name of a %s; a regular expression must stand alone in the list",
				quote(t.value), kind)
		}
	}
	return names, nil, len(list) > 0 && len(names) == 0
}

// filterEntry checks the only entry of a list.
func (r *report) filterEntry(at place, kind string, t text, name *regexp.Regexp) ([]string, *regexp.Regexp) {
	if t.broken {
		return nil, nil
	}
	if name.MatchString(t.value) {
		return []string{t.value}, nil
	}
	parsed, err := syntax.Parse(t.value, syntax.Perl)
	if err == nil && !r.affords(at, t.line, stepsOf(parsed)*bytesOfStep) {
		return nil, nil
	}
	expression, err := regexp.Compile(t.value)
	if err == nil && !strings.ContainsAny(t.value, expressionChars) {
		err = errors.New("it has none of " + expressionChars)
	}
	if err != nil {
		r.errorf(at, t.line, "%s is neither the name of a %s nor a regular expression: %v", quote(t.value), kind, err)
		return nil, nil
	}
	return nil, expression
}
