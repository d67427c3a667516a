package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Documents of thousands of queues are written by programs, or by people who keep to
// a small part of YAML: blocks by indentation, words, quoted text without escapes,
// flow collections in one line, comments. This reads that part ten times as fast as
// the library does, into the same nodes, and gives up at whatever else it meets:
// then the library reads the document, and says what is wrong with it.
// FuzzPlain holds the two against each other.

// plainly reads a document; nil where that is not for it. What it gives has the
// content, the kinds, the tags and the lines that the library's nodes have, but no
// columns and comments.
func plainly(text []byte) *yaml.Node {
	p := &plain{lines: plainLines(string(text))}
	if len(p.lines) == 0 {
		return nil
	}
	root := p.block(p.lines[0].indent, 0)
	if p.left || p.at < len(p.lines) {
		return nil
	}
	return root
}

// plainLine is a line that says something.
type plainLine struct {
	indent int
	text   string // from its first character on, without blanks at the end
	number int
}

// plainLines are the lines but for blank ones and comments; none where a character
// is not printable ASCII, or a line is about the document itself.
func plainLines(text string) []plainLine {
	lines := make([]plainLine, 0, strings.Count(text, "\n")+1)
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		for i := range len(line) {
			if line[i] < ' ' || line[i] > '~' {
				return nil
			}
		}
		said := strings.TrimLeft(line, " ")
		if said == "" || said[0] == '#' {
			continue
		}
		indent := len(line) - len(said)
		if indent == 0 && (strings.HasPrefix(said, "---") || strings.HasPrefix(said, "...") || said[0] == '%') {
			return nil
		}
		lines = append(lines, plainLine{indent, strings.TrimRight(said, " "), number})
	}
	return lines
}

// plain is a document that is being read. Once left is set nothing counts any more.
type plain struct {
	lines []plainLine
	at    int // the next line
	left  bool
	slab  []yaml.Node // nodes are made many at a time
}

// plainDepth is how deep collections may be in each other.
const plainDepth = 250

// leave gives up.
func (p *plain) leave() *yaml.Node {
	p.left = true
	return nil
}

func (p *plain) node(kind yaml.Kind, line int) *yaml.Node {
	const many = 512
	if len(p.slab) == 0 {
		p.slab = make([]yaml.Node, many)
	}
	n := &p.slab[0]
	p.slab = p.slab[1:]
	n.Kind, n.Line = kind, line
	switch kind {
	case yaml.MappingNode:
		n.Tag = "!!map"
	case yaml.SequenceNode:
		n.Tag = "!!seq"
	}
	return n
}

// here tells whether the next line begins at the indentation.
func (p *plain) here(indent int) bool {
	return !p.left && p.at < len(p.lines) && p.lines[p.at].indent == indent
}

func isEntry(text string) bool { return text == "-" || strings.HasPrefix(text, "- ") }

// block reads the collection that begins in the next line. What follows it has to be
// further to the left, which is for the caller to see.
func (p *plain) block(indent, depth int) *yaml.Node {
	if depth > plainDepth {
		return p.leave()
	}
	if isEntry(p.lines[p.at].text) {
		return p.blockList(indent, depth)
	}
	n := p.node(yaml.MappingNode, p.lines[p.at].number)
	for p.here(indent) {
		line := &p.lines[p.at]
		key, rest := plainKey(line.text)
		if key == "" {
			return p.leave()
		}
		n.Content = append(n.Content, p.word(key, line.number))
		value := p.valueOf(line, rest, indent, depth)
		if p.left {
			return nil
		}
		n.Content = append(n.Content, value)
	}
	return n
}

// valueOf reads what stands behind a key of a block, or in the lines below it.
func (p *plain) valueOf(line *plainLine, rest string, indent, depth int) *yaml.Node {
	p.at++
	if rest != "" {
		return p.inLine(rest, line.number, indent, depth)
	}
	switch {
	case p.at == len(p.lines):
	case p.lines[p.at].indent > indent:
		return p.block(p.lines[p.at].indent, depth+1)
	case p.lines[p.at].indent == indent && isEntry(p.lines[p.at].text):
		return p.blockList(indent, depth+1)
	}
	return p.leave() // null
}

// blockList reads a list whose entries begin at the indentation.
func (p *plain) blockList(indent, depth int) *yaml.Node {
	n := p.node(yaml.SequenceNode, p.lines[p.at].number)
	for p.here(indent) && isEntry(p.lines[p.at].text) {
		line := &p.lines[p.at]
		item := strings.TrimLeft(line.text[1:], " ")
		var value *yaml.Node
		if key, _ := plainKey(item); key != "" {
			// A mapping that begins behind the dash: its keys are below its first one.
			line.indent += len(line.text) - len(item)
			line.text = item
			value = p.block(line.indent, depth+1)
		} else {
			p.at++
			value = p.inLine(item, line.number, indent, depth)
		}
		if p.left {
			return nil
		}
		n.Content = append(n.Content, value)
	}
	return n
}

// inLine reads a value that ends with its line.
func (p *plain) inLine(text string, line, indent, depth int) *yaml.Node {
	value, rest := p.value(text, line, depth+1, false)
	comment := rest == "" || rest[0] == ' ' && strings.HasPrefix(strings.TrimLeft(rest, " "), "#")
	goesOn := p.at < len(p.lines) && p.lines[p.at].indent > indent
	if p.left || !comment || goesOn {
		return p.leave()
	}
	return value
}

// value reads one value and returns what is behind it in the line.
func (p *plain) value(text string, line, depth int, inFlow bool) (*yaml.Node, string) {
	if text == "" || depth > plainDepth {
		return p.leave(), ""
	}
	switch text[0] {
	case '{', '[':
		return p.flow(text, line, depth)
	case '\'', '"':
		return p.quoted(text, line)
	}
	end := plainWord(text, inFlow)
	if end == 0 {
		return p.leave(), ""
	}
	return p.word(text[:end], line), text[end:]
}

// flow reads {...} or [...].
func (p *plain) flow(text string, line, depth int) (*yaml.Node, string) {
	kind, closing := yaml.MappingNode, byte('}')
	if text[0] == '[' {
		kind, closing = yaml.SequenceNode, ']'
	}
	n := p.node(kind, line)
	n.Style = yaml.FlowStyle
	text = strings.TrimLeft(text[1:], " ")
	if text != "" && text[0] == closing {
		return n, text[1:]
	}
	for {
		if kind == yaml.MappingNode {
			key, rest := plainKey(text)
			if key == "" {
				return p.leave(), ""
			}
			n.Content = append(n.Content, p.word(key, line))
			text = rest
		}
		value, rest := p.value(text, line, depth+1, true)
		rest = strings.TrimLeft(rest, " ")
		if p.left || rest == "" || rest[0] != closing && rest[0] != ',' {
			return p.leave(), ""
		}
		n.Content = append(n.Content, value)
		if rest[0] == closing {
			return n, rest[1:]
		}
		text = strings.TrimLeft(rest[1:], " ")
	}
}

// quoted reads text in quotes that has none of them in it, and no escapes.
func (p *plain) quoted(text string, line int) (*yaml.Node, string) {
	quote := text[:1]
	said, rest, ends := strings.Cut(text[1:], quote)
	if !ends || strings.HasPrefix(rest, quote) || quote == `"` && strings.Contains(said, `\`) {
		return p.leave(), ""
	}
	n := p.node(yaml.ScalarNode, line)
	n.Value, n.Tag, n.Style = said, "!!str", yaml.SingleQuotedStyle
	if quote == `"` {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n, rest
}

// word makes a scalar of plain words. What type it has the library says.
func (p *plain) word(text string, line int) *yaml.Node {
	n := p.node(yaml.ScalarNode, line)
	n.Value = text
	n.Tag = n.ShortTag()
	return n
}

// longestKey is what the library takes for a key without looking twice, and less.
const longestKey = 128

// plainKey returns the key that the text begins with, and what is behind its colon;
// "" where it begins with none.
func plainKey(text string) (key, rest string) {
	end := 0
	for end < len(text) && end <= longestKey && inWord(text[end]) {
		end++
	}
	if end == 0 || end > longestKey || !beginsWord(text) || end == len(text) || text[end] != ':' {
		return "", ""
	}
	rest = text[end+1:]
	if rest != "" && rest[0] != ' ' {
		return "", ""
	}
	rest = strings.TrimLeft(rest, " ")
	if rest != "" && rest[0] == '#' {
		return "", "" // a comment, and the value below
	}
	return text[:end], rest
}

// plainWord returns where the plain words end that the text begins with: before a
// comment, or before what ends them in a flow collection. 0 where there are none, or
// something else is among them.
func plainWord(text string, inFlow bool) int {
	if !beginsWord(text) {
		return 0
	}
	end := 0 // behind the last character that is no blank
	for i := range len(text) {
		switch c := text[i]; {
		case inWord(c):
			end = i + 1
		case c == ' ':
		case c == '#' && i > end:
			return end
		case inFlow && (c == ',' || c == ']' || c == '}'):
			return end
		default:
			return 0
		}
	}
	return end
}

// beginsWord tells whether plain words may begin so. A sign is one before a digit only.
func beginsWord(text string) bool {
	if text == "" {
		return false
	}
	if text[0] == '-' || text[0] == '+' {
		return len(text) > 1 && text[1] >= '0' && text[1] <= '9'
	}
	return inWord(text[0]) && text[0] != '@' // which YAML has reserved
}

func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == '@'
}
