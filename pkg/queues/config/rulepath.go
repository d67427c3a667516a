package config

import (
	"slices"
	"strings"
)

// rulePaths checks the part of every placement rule that is fixed, counted from
// root, against the queues of the document: what can never give a leaf is an error.
func (r *report) rulePaths(rules []*rawRule, root *rawQueue) {
	index := map[string]*rawQueue{}
	var walk func(q *rawQueue)
	walk = func(q *rawQueue) {
		if !q.duplicate {
			index[q.path] = q
		}
		for _, child := range q.queues {
			walk(child)
		}
	}
	walk(root)
	for _, rule := range rules {
		r.rulePath(rule, index)
	}
}

// rulePath follows the fixed rules of a chain from the outermost parent inwards. As in
// YuniKorn, create of the rule itself says whether queues of its parents may be missing.
func (r *report) rulePath(rule *rawRule, index map[string]*rawQueue) {
	var chain []*rawRule
	for link := rule; link != nil; link = link.parent {
		chain = append(chain, link)
	}
	slices.Reverse(chain) // the outermost parent first
	path := RootName
	for i, link := range chain {
		value := strings.ToLower(strings.TrimSpace(link.value.value))
		if !strings.EqualFold(link.name.value, string(RuleFixed)) || link.value.broken {
			return
		}
		if _, ok := badSegment(value); !ok || value == RootName || (Qualified(value) && i > 0) {
			return // reported before
		}
		if path = join(path, value); strings.Count(path, ".") > MaxDepth+1 {
			r.errorf(place{path: link.path, key: "value"}, link.value.line, "queue %s is more than %d levels deep", quote(path), MaxDepth+1)
			return
		}
		last := i == len(chain)-1
		if !r.fixedPath(place{path: link.path, key: "value"}, link, path, last, rule.create, index) {
			return
		}
	}
}

// join appends the value of a fixed rule to the path so far.
func join(path, value string) string {
	if Qualified(value) {
		return value
	}
	return path + "." + value
}

// fixedPath checks that the path can hold applications (last) or queues, and
// tells whether it makes sense to look further.
func (r *report) fixedPath(at place, rule *rawRule, path string, last, create bool, index map[string]*rawQueue) bool {
	line := max(rule.line, rule.value.line)
	q, deepest := index[path], deepestExisting(path, index)
	switch {
	case q != nil && last && !q.leaf():
		r.errorf(at, line, "queue %s has queues below it or parent: true; applications go to leaf queues only", path)
	case q != nil && !last && q.leaf():
		r.errorf(at, line, "queue %s is a leaf, there can be no queue below it for the rule to place into", path)
	case q != nil:
		return true
	case deepest.leaf():
		r.errorf(at, line, "queue %s cannot be created: %s is a leaf", path, deepest.path)
	case !create:
		r.errorf(at, line, "queue %s does not exist and create is false", path)
	case !rule.create:
		r.warnf(at, line, "queue %s does not exist and create is false here: the rule places no pod until the queue is there", path)
	default:
		return true
	}
	return false
}

// deepestExisting returns the last queue on the way from root that exists.
func deepestExisting(path string, index map[string]*rawQueue) *rawQueue {
	for index[path] == nil {
		path = path[:strings.LastIndexByte(path, '.')]
	}
	return index[path]
}
