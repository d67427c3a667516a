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
// least one entry and is sorted by line, then text. It has the first 1,000 that were
// found; the last one says how many more there are, if there are more.
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

// maxProblems is how many problems of a document are listed, and how many warnings. A
// document may have a million, more than an administrator can read at once.
const maxProblems = 1000

// findings are problems or warnings in the order in which they were found.
type findings struct {
	list []Problem
	more int // that are not listed
}

func (f *findings) add(at place, line int, format string, args []any) {
	if len(f.list) == maxProblems {
		f.more++
		return
	}
	f.list = append(f.list, Problem{line, cut(at.path), cut(at.key), cut(fmt.Sprintf(format, args...))})
}

// longest is how many bytes of a path, a key or a text are shown.
const longest = 1000

// cut leaves out the middle of a text that is too long to read.
func cut(text string) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest/2], "") + "…" + strings.ToValidUTF8(text[len(text)-longest/2:], "")
}

// sorted returns what is listed, each once, by line, and in the end how many more
// there are, said with the given words.
func (f *findings) sorted(more string) []Problem {
	slices.SortFunc(f.list, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Line, b.Line),
			strings.Compare(a.Text, b.Text),
			strings.Compare(a.Path, b.Path),
			strings.Compare(a.Key, b.Key),
		)
	})
	list := slices.Compact(f.list)
	if f.more > 0 {
		list = append(list, Problem{Text: fmt.Sprintf(more, f.more)})
	}
	return list
}

// report collects what is wrong (problems) and what has no effect (warnings).
type report struct {
	problems, warnings findings
	made               int // see affords
}

// maxMade bounds the memory, in bytes, that is made of a document beyond its values.
const maxMade = 64 << 20

// affords tells whether something may be made of the value at a place, in addition to
// what was made before, and reports it where it first may not. REST checks documents of
// any reader, so a small document must not become a large specification.
func (r *report) affords(at place, line, bytes int) bool {
	before := r.made
	if r.made += bytes; before <= maxMade && r.made > maxMade {
		r.errorf(at, line, "the document is too large here, and the rest is not checked: have fewer or shorter queues, levels, "+
			"inherited properties, types of resources, limits and regular expressions")
	}
	return r.made <= maxMade
}

func (r *report) errorf(at place, line int, format string, args ...any) {
	r.problems.add(at, line, format, args)
}

func (r *report) warnf(at place, line int, format string, args ...any) {
	r.warnings.add(at, line, format, args)
}

// invalid tells whether anything is wrong so far.
func (r *report) invalid() bool { return len(r.problems.list) > 0 }

// err returns the collected problems as an error, nil when there are none.
func (r *report) err() error {
	if !r.invalid() {
		return nil
	}
	return &InvalidError{Problems: r.problems.sorted("and %d more; correct these first")}
}
