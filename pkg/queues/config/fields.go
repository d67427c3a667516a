package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// decoder turns nodes into raw values and reports what does not fit.
type decoder struct{ *report }

// field is a value of a mapping, or of a list, with the place it is at.
type field struct {
	place
	key  string // as written; empty in a list
	line int    // of the key, or of the list entry
	node *yaml.Node
}

// keys says what to do with the keys of a mapping; others are unknown.
type keys map[string]func(field)

// mapping calls the functions of known for the keys of a mapping in document
// order. Null counts as a mapping without keys; whether it is a mapping at all
// is returned.
func (d *decoder) mapping(n *yaml.Node, at place, known keys) bool {
	for _, f := range d.fields(n, at) {
		read, ok := known[f.key]
		switch {
		case ok:
			read(f)
		case known[strings.ToLower(f.key)] != nil:
			d.errorf(f.place, f.line, "is not a known key: keys are in lower case, write %s", strings.ToLower(f.key))
		default:
			d.errorf(f.place, f.line, "is not a known key: use %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return isNull(n) || deref(n).Kind == yaml.MappingNode
}

// fields returns the keys and values of a mapping in document order, keys of
// merged mappings ("<<") last. Duplicate keys are reported and left out.
func (d *decoder) fields(n *yaml.Node, at place) []field {
	n = deref(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.errorf(at, n.Line, "must be a mapping of keys to values, not %s", kindOf(n))
		return nil
	}
	out := make([]field, 0, len(n.Content)/2)
	lines := make(map[string]int, len(n.Content)/2) // of the keys so far
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := deref(n.Content[i]), n.Content[i+1]
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
		case key.Kind != yaml.ScalarNode:
			d.errorf(at, key.Line, "a key must be a plain word, not %s", kindOf(key))
		case lines[key.Value] != 0:
			d.errorf(at.at(label(key.Value)), key.Line, "is given twice, first in line %d", lines[key.Value])
		default:
			lines[key.Value] = key.Line
			out = append(out, field{at.at(label(key.Value)), key.Value, key.Line, value})
		}
	}
	for _, m := range merged {
		out = d.merge(out, lines, m, at)
	}
	return out
}

// merge appends the fields of a merged mapping, or of a list of them, that are
// not there yet.
func (d *decoder) merge(out []field, seen map[string]int, n *yaml.Node, at place) []field {
	n = deref(n)
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	for _, source := range sources {
		if deref(source).Kind != yaml.MappingNode {
			d.errorf(at, source.Line, "<< must name a mapping or a list of mappings")
			continue
		}
		for _, f := range d.fields(source, at) {
			if seen[f.key] == 0 {
				seen[f.key] = f.line
				out = append(out, f)
			}
		}
	}
	return out
}

// list calls each for the entries of a list. Null is an empty list; whether
// there was a list at all is returned.
func (d *decoder) list(f field, each func(field)) bool {
	n := deref(f.node)
	switch {
	case isNull(n):
		return false
	case n.Kind != yaml.SequenceNode:
		d.errorf(f.place, n.Line, "must be a list, not %s", kindOf(n))
		return false
	}
	for i, item := range n.Content {
		each(field{place: f.index(i), line: item.Line, node: item})
	}
	return true
}

// text is a scalar as written, with the line of its key.
type text struct {
	value  string
	line   int  // 0 when it is absent
	broken bool // it was there and is no text
}

// text reads any scalar as text; null is empty.
func (d *decoder) text(f field) text {
	n := deref(f.node)
	switch {
	case n.Kind != yaml.ScalarNode:
		d.errorf(f.place, n.Line, "must be text, not %s", kindOf(n))
		return text{line: f.line, broken: true}
	case isNull(n):
		return text{line: f.line}
	}
	return text{value: n.Value, line: f.line}
}

// texts reads a list of scalars. What is no list gives one broken text.
func (d *decoder) texts(f field) []text {
	var out []text
	if !d.list(f, func(item field) { out = append(out, d.text(item)) }) && !isNull(f.node) {
		return []text{{line: f.line, broken: true}}
	}
	return out
}

// boolean reads true or false; unset where it is null or something else.
func (d *decoder) boolean(f field, unset bool) bool {
	if isNull(f.node) {
		return unset
	}
	var value bool
	n := deref(f.node)
	if n.Kind != yaml.ScalarNode || n.Decode(&value) != nil {
		d.errorf(f.place, n.Line, "must be true or false, not %s", kindOf(n))
		return unset
	}
	return value
}

// count is a whole number that is not negative.
type count struct {
	value  uint64
	line   int  // 0 when it is absent
	broken bool // it was there and could not be read
}

func (d *decoder) count(f field) count {
	if isNull(f.node) {
		return count{}
	}
	c := count{line: f.line}
	n := deref(f.node)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&c.value) != nil {
		d.errorf(f.place, n.Line, "must be a whole number from 0 to 18446744073709551615, not %s", kindOf(n))
		c.broken = true
	}
	return c
}

// kindOf names a value for a sentence.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0: // which makes a number text
		return quote(n.Value) + " in quotes"
	}
	return quote(n.Value)
}

// label returns a key for use in a place, quoted where it is no plain word.
func label(key string) string {
	if key != "" && len(key) <= longestQuote && !strings.ContainsFunc(key, notPlain) {
		return key
	}
	return quote(key)
}

func notPlain(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// longestQuote is the number of bytes of a foreign text that a sentence shows.
const longestQuote = 70

// quote quotes a foreign text for a sentence, cut where it is long.
func quote(s string) string {
	if len(s) > longestQuote {
		s = s[:longestQuote] + "..."
	}
	return strconv.Quote(s)
}
