package queuestest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Tree reads a specification from an indented text, one queue a line:
//
//	root
//	  a guaranteed.vcore=8 max.pods=10 props=priority.offset:5
//	  b parent template.max.vcore=2
//
// Words of a queue:
//
//	parent                     a parent although it has no children
//	guaranteed.T=N max.T=N     quota of resource type T, see [Amount]
//	maxapps=N                  maxapplications
//	props=KEY:VALUE,...        properties
//	submit=USERS/GROUPS        access lists; names joined by commas, * is all users;
//	admin=USERS/GROUPS         without submit= all users may submit at root
//	limit=USERS/GROUPS;W;...   a limit; W is max.T=N or maxapps=N; repeatable
//	template.W                 W of the child template: a quota, maxapps or props
//
// Children are indented by two spaces. Lines that begin with # are skipped.
func Tree(text string) (*config.Spec, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	return Spec(root)
}

// MustTree is Tree for a text that is right.
func MustTree(tb testing.TB, text string) *config.Spec {
	tb.Helper()
	spec, err := Tree(text)
	if err != nil {
		tb.Fatal(err)
	}
	return spec
}

func parse(text string) (*config.Queue, error) {
	var path []*config.Queue // from root to the line before
	first := 0               // how far root is indented
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		n, indent := &config.Queue{Settings: config.Settings{Name: words[0]}}, len(line)-len(strings.TrimLeft(line, " \t"))
		var err error
		for _, word := range words[1:] {
			err = errors.Join(err, set(n, word))
		}
		if path == nil {
			path, first = []*config.Queue{n}, indent
		} else if depth := (indent - first) / 2; depth < 1 || depth > len(path) || (indent-first)%2 != 0 {
			err = fmt.Errorf("indented by %d spaces", indent-first)
		} else {
			path[depth-1].Children = append(path[depth-1].Children, n)
			path = append(path[:depth], n)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d, queue %s: %w", i+1, words[0], err)
		}
	}
	if len(path) == 0 {
		return nil, errors.New("tree has no queue")
	}
	return path[0], nil
}

func set(q *config.Queue, word string) (err error) {
	if own, ok := strings.CutPrefix(word, "template."); ok {
		if q.Template == nil {
			q.Template = &config.Template{}
		}
		return setQuota(own, &q.Template.Quota, &q.Template.Properties)
	}
	switch key, value, _ := strings.Cut(word, "="); key {
	case "parent":
		q.Children = []*config.Queue{}
	case "submit":
		q.SubmitACL = acl(value)
	case "admin":
		q.AdminACL = acl(value)
	case "limit":
		var l config.Limit
		l, err = limit(value)
		q.Limits = append(q.Limits, l)
	default:
		err = setQuota(word, &q.Quota, &q.Properties)
	}
	return err
}

// setQuota reads a word that queues, templates and limits have.
func setQuota(word string, q *config.Quota, properties *map[string]string) (err error) {
	key, value, _ := strings.Cut(word, "=")
	quota, name, _ := strings.Cut(key, ".")
	switch quota {
	case "guaranteed":
		amounts := q.Guaranteed.Map()
		amounts[name], err = Amount(name, value)
		q.Guaranteed = resources.GuaranteeFrom(amounts)
	case "max":
		amounts := q.Max.Map()
		amounts[name], err = Amount(name, value)
		q.Max = resources.LimitFrom(amounts)
	case "maxapps":
		q.MaxApplications, err = strconv.ParseUint(value, 10, 64)
	case "props":
		*properties = map[string]string{}
		for _, property := range strings.Split(value, ",") {
			k, v, _ := strings.Cut(property, ":")
			(*properties)[k] = v
		}
	default:
		err = fmt.Errorf("word %q is not understood", word)
	}
	return err
}

func acl(text string) config.ACL {
	users, groups, _ := strings.Cut(text, "/")
	return config.ACL{Everybody: users == "*", Users: names(users), Groups: names(groups)}
}

func names(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func limit(text string) (l config.Limit, err error) {
	words := strings.Split(text, ";")
	users, groups, _ := strings.Cut(words[0], "/")
	l.Users, l.Groups = names(users), names(groups)
	var q config.Quota
	for _, word := range words[1:] {
		err = errors.Join(err, setQuota(word, &q, new(map[string]string)))
	}
	l.MaxResources, l.MaxApplications = q.Max, q.MaxApplications
	return l, err
}

// Rules reads placement rules, one a line: the kind, then its value, then
// "create", then "<" and the parent rule in the same words.
//
//	provided create
//	tag namespace create < fixed root.teams
func Rules(text string) ([]config.Rule, error) {
	var rules []config.Rule
	for _, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		r, err := rule(line)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", line, err)
		}
		rules = append(rules, *r)
	}
	return rules, nil
}

func rule(text string) (r *config.Rule, err error) {
	own, parent, has := strings.Cut(text, "<")
	words := strings.Fields(own)
	if len(words) == 0 {
		return nil, errors.New("has no kind")
	}
	r = &config.Rule{Kind: config.RuleKind(words[0])}
	for _, word := range words[1:] {
		switch {
		case word == "create":
			r.Create = true
		case r.Value == "":
			r.Value = word
		default:
			return nil, fmt.Errorf("word %q is not understood", word)
		}
	}
	if has {
		r.Parent, err = rule(parent)
	}
	return r, err
}
