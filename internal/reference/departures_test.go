package reference

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A decision begins with its number and a sentence in bold.
var decision = regexp.MustCompile(`(?m)^(\d+)\. \*\*(.*)$`)

// unlisted lists rulings marked † in laws and decisions that speak of YuniKorn which
// the page for those who come from there does not have.
func unlisted(laws, decisions, page string) []string {
	var out []string
	// The first one in laws says what the mark means.
	marked := strings.Count(laws, "†") - 1
	rows := 0
	for line := range strings.SplitSeq(page, "\n") {
		if cell, _, found := strings.Cut(strings.TrimPrefix(line, "| "), " | "); found && strings.HasSuffix(cell, "†") {
			rows++
		}
	}
	if rows != marked {
		out = append(out, "rulings marked †")
	}
	for _, d := range decision.FindAllStringSubmatch(decisions, -1) {
		number := regexp.MustCompile(`[Dd]ecision ` + d[1] + `\b`)
		if strings.Contains(d[2], "YuniKorn") && !number.MatchString(page) {
			out = append(out, "decision "+d[1])
		}
	}
	return out
}

func TestEveryDepartureFromYuniKornIsListed(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, what := range unlisted(read("laws.md"), read("decisions.md"), read("migrate-from-yunikorn.md")) {
		t.Errorf("migrate-from-yunikorn.md lacks %s", what)
	}
	const laws = "Marked †.\n1. a †\n2. b †\n"
	const decisions = "1. **A.** As YuniKorn.\n2. **B.** Not so.\n3. **C.** YuniKorn.\n"
	got := unlisted(laws, decisions, "| law 1 † | x |\ndecision 11, decision 3")
	if want := []string{"rulings marked †", "decision 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
