package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxDocumentBytes is the size above which a document is refused unread, and
// above which a compressed one is not unpacked any further.
const MaxDocumentBytes = 8 << 20

// maxNodes bounds how many values a document may have, as it is written and with all
// aliases written out. A value takes some 250 bytes of memory while it is read; a
// document of 5,000 queues with six kinds of settings each has 200,000. A text counts
// once more for every manyWords bytes.
const (
	maxNodes  = 1 << 20
	manyWords = 64
)

// readDocument returns the root node of the text; nil when there is nothing in
// it but blanks and comments, or when a problem was reported.
func readDocument(text []byte, r *report) *yaml.Node {
	if len(text) > MaxDocumentBytes {
		r.errorf(place{}, 0, "the document has %d bytes, more than the %d allowed", len(text), MaxDocumentBytes)
		return nil
	}
	if beginnings(text) > maxNodes {
		r.errorf(place{}, 0, "the document has more than the %d values allowed", maxNodes)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		r.syntax(err, text)
		return nil
	}
	for {
		var next yaml.Node
		if err := decoder.Decode(&next); err != nil {
			r.syntax(err, text)
			break
		}
		if len(next.Content) > 0 && !isNull(next.Content[0]) {
			r.errorf(place{}, next.Content[0].Line, "a second YAML document begins here; put everything into one")
			break
		}
	}
	if r.invalid() || len(document.Content) == 0 {
		return nil
	}
	root := document.Content[0]
	if isNull(root) && root.Value == "" {
		return nil
	}
	if !r.affordable(root) {
		return nil
	}
	return root
}

// beginnings returns at how many places of the text values can begin, at most three at
// each: a mapping, its first key, and nothing as that one's value. Before the text is
// read nothing more is known of how much memory that would take. Comments and strings are
// counted like everything else. To tell them apart, all quotes before them would have to be
// parsed, and an error there would let a too large document through. Prose has one such
// place in 20 to 70 bytes, and the largest document may have one in 8.
func beginnings(text []byte) int {
	n := 1
	for _, before := range []string{"\n", ":", ",", "[", "{", "- ", "? "} {
		n += bytes.Count(text, []byte(before))
	}
	return n
}

var (
	yamlError     = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`) // comes without a line
)

// syntax reports what the YAML library says; the end of the text is no problem.
func (r *report) syntax(err error, document []byte) {
	if errors.Is(err, io.EOF) {
		return
	}
	line, text := 0, err.Error()
	if m := yamlError.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		before, _, _ := bytes.Cut(document, []byte("*"+m[1]))
		line = bytes.Count(before, []byte("\n")) + 1
	}
	r.errorf(place{}, line, "not YAML: %s", strings.ReplaceAll(text, "\n", " "))
}

// affordable tells whether the document with all aliases written out is finite
// and small enough to be walked through, and reports it where it is not.
func (r *report) affordable(root *yaml.Node) bool {
	e := expansion{sizes: map[*yaml.Node]int{}}
	size := e.size(root)
	switch {
	case e.cycle != nil:
		r.errorf(place{}, e.cycle.Line, "alias *%s contains itself", e.cycle.Value)
		return false
	case size > maxNodes:
		r.errorf(place{}, 0, "the document has more than the %d values allowed, aliases written out", maxNodes)
		return false
	}
	return true
}

// expansion counts nodes with aliases written out. Every anchored node is
// counted once and remembered, so that the counting itself is cheap.
type expansion struct {
	sizes map[*yaml.Node]int // by anchored node; counting while it is still being counted
	cycle *yaml.Node
}

const counting = -1

func (e *expansion) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		size := e.sizes[n.Alias] // anchors come before their aliases
		if size == counting {
			e.cycle = n
			return 1
		}
		return size
	}
	if n.Anchor != "" {
		e.sizes[n] = counting
	}
	total := 1 + len(n.Value)/manyWords // it is looked at again for each alias
	for _, child := range n.Content {
		total = min(total+e.size(child), maxNodes+1)
	}
	if n.Anchor != "" {
		e.sizes[n] = total
	}
	return total
}

// deref follows aliases to the node they stand for.
func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// isNull tells whether the node is an explicit or an omitted null.
func isNull(n *yaml.Node) bool {
	n = deref(n)
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}
