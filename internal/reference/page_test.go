package reference

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the lists of arguments")

const (
	pagePath  = "../../docs/configuration.md"
	typesPath = "../../apis/config/types.go"
	listHead  = "<!-- The next three lists are made from apis/config/types.go: go test ./internal/reference -rewrite -->\n"
	listEnd   = "\n<!-- end of these lists -->\n"
)

func readPage(t *testing.T) string {
	t.Helper()
	return string(expect.Get(os.ReadFile(pagePath))(t))
}

// section is what a page has below a heading, up to the next one.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("the page has no %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

// rows are the rows of the tables in a text, by cell, without the row at the head.
func rows(text string) [][]string {
	var out [][]string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| `") {
			out = append(out, strings.Split(strings.Trim(line, "| \n"), " | "))
		}
	}
	return out
}

// longestCell is how many bytes a cell of a list has at most.
const longestCell = 200

// split returns the first sentences of a text that fit in a cell, and the others.
func split(text string) (cell, rest string) {
	all := sentences(text)
	for n := len(all); n > 1; n-- {
		if cell = strings.Join(all[:n], " "); len(cell) <= longestCell {
			return cell, strings.Join(all[n:], " ")
		}
	}
	return all[0], strings.Join(all[1:], " ")
}

// lists are the arguments as the page has them.
func lists(arguments []Arguments) string {
	var b strings.Builder
	for _, a := range arguments {
		var more strings.Builder // below the table
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", a.Plugin, strings.Replace(a.About, a.Plugin+"Args", "They", 1))
		b.WriteString("| argument | type | default | bounds | meaning |\n|---|---|---|---|---|\n")
		for _, f := range a.Fields {
			cell, rest := split(f.Meaning)
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Name, f.Type, f.Default, cmp.Or(f.Bounds, "-"), cell)
			if rest != "" {
				fmt.Fprintf(&more, "* `%s`: %s\n", f.Name, rest)
			}
		}
		if more.Len() > 0 {
			b.WriteString("\n" + more.String())
		}
	}
	return b.String()
}

func TestPageIsUpToDate(t *testing.T) {
	page := readPage(t)
	before, rest, ok := strings.Cut(page, listHead)
	_, after, ended := strings.Cut(rest, listEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the lists", pagePath)
	}
	want := before + listHead + lists(expect.Get(ReadArguments(typesPath))(t)) + listEnd + after
	if *rewrite {
		expect.OK(t, os.WriteFile(pagePath, []byte(want), 0o644))
		page = want
	}
	expect.Same(t, "the page and what it is made from (-) differ; rewrite it with: go test ./internal/reference -rewrite", want, page)
}

func TestCellsAreShort(t *testing.T) {
	_, text, _ := strings.Cut(readPage(t), listHead)
	text, _, _ = strings.Cut(text, listEnd)
	for _, row := range rows(text) {
		for _, cell := range row {
			expect.That(t, len(cell) <= longestCell,
				"%s has a cell of %d bytes, at most %d: begin the comment with a shorter sentence",
				row[0], len(cell), longestCell)
		}
	}
}
