package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// String renders the problem in one line: "line 4: root.a: resources.max.memory:
// text". Parts that are not known are left out.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		b.WriteString("line " + strconv.Itoa(p.Line) + ": ")
	}
	for _, part := range []string{p.Path, p.Key} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	b.WriteString(p.Text)
	return b.String()
}

// InvalidError is the error of a document that was refused. Problems has at
// least one entry and is sorted by line, then text.
type InvalidError struct {
	Problems []Problem
}

// Error renders the problems, one per line.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// place is where a value is: the queue path (or partition key) and the key in it.
type place struct {
	path, key string
}

// at returns the place of a key inside p.
func (p place) at(key string) place {
	if p.key != "" {
		key = p.key + "." + key
	}
	return place{p.path, key}
}

// index returns the place of a list entry inside p, counted from 0.
func (p place) index(i int) place {
	return place{p.path, p.key + "[" + strconv.Itoa(i) + "]"}
}

// report collects what is wrong (problems) and what has no effect (warnings).
type report struct {
	problems, warnings []Problem
}

func (r *report) errorf(at place, line int, format string, args ...any) {
	r.problems = append(r.problems, Problem{line, at.path, at.key, fmt.Sprintf(format, args...)})
}

func (r *report) warnf(at place, line int, format string, args ...any) {
	r.warnings = append(r.warnings, Problem{line, at.path, at.key, fmt.Sprintf(format, args...)})
}

// err returns the collected problems as an error, nil when there are none.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	sortProblems(r.problems)
	return &InvalidError{Problems: slices.Compact(r.problems)}
}

func sortProblems(list []Problem) {
	slices.SortFunc(list, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Line, b.Line),
			strings.Compare(a.Text, b.Text),
			strings.Compare(a.Path, b.Path),
			strings.Compare(a.Key, b.Key),
		)
	})
}
