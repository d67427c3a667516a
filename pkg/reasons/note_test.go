package reasons

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestNote(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"short", "queue root.a: full", "queue root.a: full"},
		{"just fits", strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		{"one too many", strings.Repeat("x", 1025), strings.Repeat("x", 1021) + "..."},
		{"cut between letters of two bytes", strings.Repeat("é", 513), strings.Repeat("é", 510) + "..."},
		{"cut within a letter of four bytes", "x" + strings.Repeat("😀", 300), "x" + strings.Repeat("😀", 255) + "..."},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"short, but not once it is UTF-8", strings.Repeat("a\xff", 500), strings.Repeat("a\uFFFD", 255) + "a..."},
	} {
		expect.Same(t, c.name, c.want, Note(c.in))
	}
}

func TestAdvice(t *testing.T) {
	entry, _ := Explain(OverMax)
	remedy := entry.Remedy
	overMax := func(text string) Reason { return New(OverMax, "%s", text) }
	fits := strings.Repeat("x", maxNote-len(". "+remedy))
	for _, c := range []struct {
		name string
		in   Reason
		want string
	}{
		{"none", Reason{}, ""},
		{"not in the table", Reason{Code: "Other", Text: "so be it"}, "so be it"},
		{"a sentence", overMax("queue root.a: full"), "queue root.a: full. " + remedy},
		{"with a period", overMax("queue root.a: full."), "queue root.a: full. " + remedy},
		{"over two lines", overMax("queue root.a:\nfull.\n"), "queue root.a:\nfull. " + remedy},
		{"no sentence", overMax(""), remedy},
		{"just fits", overMax(fits), fits + ". " + remedy},
		{"one too many", overMax(fits + "y"), fits[:len(fits)-3] + "... " + remedy},
		{"not UTF-8", overMax("a\xff"), "a\uFFFD. " + remedy},
		{"long once it is UTF-8", overMax(strings.Repeat("a\xff", 400)), strings.Repeat("a\uFFFD", 217) + "a... " + remedy},
	} {
		got := c.in.Advice()
		expect.Same(t, c.name, c.want, got)
		expect.That(t, len(got) <= maxNote && utf8.ValidString(got), "%s: %d bytes: %q", c.name, len(got), got)
	}
}

// TestAdviceKeepsEveryRemedy: however long the sentence is.
func TestAdviceKeepsEveryRemedy(t *testing.T) {
	for _, e := range Table() {
		for _, text := range []string{"short", strings.Repeat("x", 5000), strings.Repeat("a\xff", 400), "x" + strings.Repeat("😀", 300)} {
			got := New(e.Code, "%s", text).Advice()
			expect.That(t, len(got) <= maxNote && len(got) >= min(len(text), maxNote-5), "%s: %q", e.Code, got)
			expect.That(t, utf8.ValidString(got) && strings.HasSuffix(got, " "+e.Remedy), "%s: %q", e.Code, got)
		}
	}
}
