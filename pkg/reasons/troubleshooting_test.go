package reasons

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

const troubleshootingPath = "../../docs/troubleshooting.md"

// untold lists the codes of a table that a page has no section for, or one that
// does not say what the table says; and sections for codes that are not there.
func untold(page string, entries []Entry) []string {
	var out []string
	sections := map[string]string{}
	for i, section := range strings.Split(page, "\n### `") {
		if code, text, found := strings.Cut(section, "`\n"); i > 0 && found {
			sections[code] = text
		}
	}
	for _, e := range entries {
		text, found := sections[string(e.Code)]
		switch {
		case !found:
			out = append(out, string(e.Code)+" has no section")
		case !strings.Contains(text, e.Meaning):
			out = append(out, string(e.Code)+" does not say what it means: "+e.Meaning)
		case !strings.Contains(text, "**Do:** "+e.Remedy):
			out = append(out, string(e.Code)+" does not say what to do: "+e.Remedy)
		case strings.TrimSpace(text) == e.Meaning+"\n\n**Do:** "+e.Remedy:
			out = append(out, string(e.Code)+" says nothing that the table does not")
		}
		delete(sections, string(e.Code))
	}
	for code := range sections {
		out = append(out, code+" is no code any more")
	}
	slices.Sort(out)
	return out
}

func TestTroubleshootingHasEveryCode(t *testing.T) {
	page := expect.Get(os.ReadFile(troubleshootingPath))(t)
	for _, wrong := range untold(string(page), Table()) {
		t.Errorf("%s: %s", troubleshootingPath, wrong)
	}
}

func TestWrongTroubleshootingPagesAreFound(t *testing.T) {
	page := "# Page\n\n### `Good`\n\nIt is good.\n\nLook.\n\n**Do:** Nothing.\n\n### `Bare`\n\nIt is bare.\n\n**Do:** Less.\n\n### `Vague`\n\nHm.\n\n**Do:** More.\n\n### `Old`\n\nGone.\n"
	entries := []Entry{{"Good", "It is good.", "Nothing."}, {"Bare", "It is bare.", "Less."}, {"Vague", "It is clear.", "More."}, {"New", "It is new.", "Look."}}
	want := []string{"Bare says nothing that the table does not", "New has no section", "Old is no code any more", "Vague does not say what it means: It is clear."}
	expect.Same(t, "untold", want, untold(page, entries))
}
