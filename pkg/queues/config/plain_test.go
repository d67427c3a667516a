package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// libraryRoot is the only document in the text as the library reads it; nil for none.
func libraryRoot(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is more than one document, or: %w", err)
	}
	return document.Content[0], nil
}

// different says where two nodes are not the same; "" for nowhere.
func different(a, b *yaml.Node) string {
	if a.Kind != b.Kind || a.Tag != b.Tag || a.Value != b.Value || a.Style != b.Style || a.Line != b.Line ||
		a.Anchor != b.Anchor || a.Alias != b.Alias || len(a.Content) != len(b.Content) {
		return fmt.Sprintf("line %d: %d %s %q style %d, %d in it; line %d: %d %s %q style %d, %d in it",
			a.Line, a.Kind, a.Tag, a.Value, a.Style, len(a.Content), b.Line, b.Kind, b.Tag, b.Value, b.Style, len(b.Content))
	}
	for i := range a.Content {
		if d := different(a.Content[i], b.Content[i]); d != "" {
			return d
		}
	}
	return ""
}

// checkPlain says where a document that is read plainly is read differently from what
// the library reads.
func checkPlain(text []byte, plain *yaml.Node) error {
	root, err := libraryRoot(text)
	if err != nil {
		return fmt.Errorf("the library refuses it: %w", err)
	}
	if d := different(plain, root); d != "" {
		return errors.New(d)
	}
	return nil
}

// plainSeeds are documents that are read plainly, and such that are close to it.
var plainSeeds = []string{
	"a: 1", "a:\n  b: x y  # comment\n\n  c: 'q: #'\nd:\n- e\n- f: g\n  h: {i: [1, -2, \"j\"], k: 0x1F}\n",
	"- a: b\n-   c: d\n    e: f\n- [g, h i , {}]\n", "a: b\n  c", "a: b:c", "a: b#c", "a: b #c", "a: {b: c,}", "a: [b]c", "a: - b",
	"a: 'it''s'", `a: "\x41"`, "a: *b", "a: &b c", "a: !!str 1", "a: |\n  text", "a: >\n  text", "<<: {a: b}", "a:\nb: c", "a: ~", "a: 2001-01-01",
	"? a\n: b", "a: b\n---\nc: d", "---\na: b", "a:   b", "a: {b: }", "a: {b}", "a: @b", "a: 1e3\nb: .5\nc: yes\nd: null\ne: 0o7\nf: 1_000\ng: .inf\nh: +1",
	"a: b\n c: d", "  a: b\n  c: d", "  a:\n b: c", "a:\n  - b\n - c", "a:\n  - b\n  c: d", "-\n a: b", "- - a", "a: \t b", "a: b\r\n", "a: \"b\nc\"", "a: [b,\nc]",
	"a: -b", "a: ---", "a: 'b' 'c'", "a: {b: 'c'#d}", "a: {b: c #d}", "a: {b: c}#d", "a: #b", "a: #b\n  c", "a: b\n#c\n  d", "a: {b : c}", "a: {b:c}", "a: {\"b\": c}",
	"a: b, c", "a: b ]", "a: [a b, c]", "a: []\nb: {}", "a: [ ]\nb: { }", "a: [,]", "a:\n- b\n-c", "a: +\nb: -", "-1: a", "1: a\ntrue: b", "a: @", "a@b: c@d", "a:\n- b: c\n- d\n",
}

// TestPlainSeeds: what is read plainly is read as the library does, and what people
// write is.
func TestPlainSeeds(t *testing.T) {
	read := 0
	for _, text := range plainSeeds {
		if plain := plainly([]byte(text)); plain != nil {
			read++
			if err := checkPlain([]byte(text), plain); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	if read < 15 || read > len(plainSeeds)-20 {
		t.Errorf("%d of %d are read plainly: that is not what they are for", read, len(plainSeeds))
	}
	document := large(100)
	plain := plainly(document)
	if plain == nil {
		t.Fatal("a document as programs write it is left to the library")
	}
	if err := checkPlain(document, plain); err != nil {
		t.Error(err)
	}
	if err := checkPlain(append(document, "# one more line\nx: y\n"...), plain); err == nil {
		t.Error("another document passes for this one")
	}
	if err := checkPlain(bytes.Replace(document, []byte("user-7"), []byte("user-8"), 1), plain); err == nil {
		t.Error("another name passes for this one")
	}
	if plainly([]byte(strings.Repeat("[", 10_000))) != nil || plainly([]byte("a: "+strings.Repeat("[", 10_000))) != nil {
		t.Error("what never ends is read")
	}
}

// What the lines of TestPlainTexts are put together from, most of it good.
var (
	plainBegins = []string{"", "- ", "-  ", "- - ", "-"}
	plainKeys   = []string{"a: ", "b:  ", "cd: ", "e.f: ", "-1: ", "true: ", "<<: ", "'g': ", "h :", "a:", ""}
	plainValues = []string{
		"x", "y z", "1", "-2", "0x1F", "1e3", "true", "null", "~", "", "", "'q r'", "\"s: # t\"", "''", "[]", "{}", "[a, b c]", "{a: b, c: {d: [1, 'e']}}",
		"[a,b]", "{a: b,}", "[a", "x]", "x, y", "{a: }", "x # said", "x #said", "x#", "#", "'it''s'", "*x", "&x y", "!!str 1", "|", "-", "- x", "x: y", "x:y", "@x", "x@y", "+", "[x] y",
	}
)

// TestPlainTexts: so it is of any lines of such parts.
func TestPlainTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	oneOf := func(list []string, usual int) string { // mostly one of the first
		if random.IntN(8) > 0 {
			list = list[:usual]
		}
		return list[random.IntN(len(list))]
	}
	read, nested := 0, 0
	for range 8_000 {
		var text strings.Builder
		for range 1 + random.IntN(6) {
			text.WriteString(strings.Repeat(" ", []int{0, 0, 2, 2, 4, 1}[random.IntN(6)]))
			text.WriteString(oneOf(plainBegins, 2) + oneOf(plainKeys, 4) + oneOf(plainValues, 18) + "\n")
		}
		document := []byte(text.String())
		plain := plainly(document)
		if plain == nil {
			continue
		}
		if err := checkPlain(document, plain); err != nil {
			t.Fatalf("%q: %v", document, err)
		}
		if read++; plain.Content[len(plain.Content)-1].Kind != yaml.ScalarNode {
			nested++
		}
	}
	if read < 400 || nested < 80 {
		t.Errorf("%d texts are read plainly, in %d of them a collection in another: too few to say anything", read, nested)
	}
}

// FuzzPlain expects of any text that is read plainly that the library reads it, and
// makes the same of it.
func FuzzPlain(f *testing.F) {
	for _, document := range append(seeds(f), plainSeeds...) {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		if plain := plainly(document); plain != nil {
			if err := checkPlain(document, plain); err != nil {
				t.Fatalf("%v\n%s", err, document)
			}
		}
	})
}
