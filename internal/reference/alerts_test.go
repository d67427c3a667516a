package reference

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

var (
	alert  = regexp.MustCompile(`(?m)^\s+- alert: (\w+)$`)
	answer = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")
)

// unanswered lists alerts for which the page does not say what to do, and names on the
// page that are no alerts.
func unanswered(rules, page string) []string {
	names := func(found [][]string) (out []string) {
		for _, f := range found {
			out = append(out, f[1])
		}
		return out
	}
	return missing(names(answer.FindAllStringSubmatch(page, -1)), names(alert.FindAllStringSubmatch(rules, -1)))
}

func TestEveryAlertHasAnAnswer(t *testing.T) {
	rules := expect.Get(os.ReadFile("../../manifests/monitoring/rules.yaml"))(t)
	page := expect.Get(os.ReadFile("../../docs/operations.md"))(t)
	for _, wrong := range unanswered(string(rules), string(page)) {
		t.Errorf("operations.md: alert %s", wrong)
	}
	got := unanswered("  - alert: A\n  - alert: B\n", "| `B` | x |\n| `C` | y |\n")
	if want := []string{"C is on the page and not known", "A is known and not on the page"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
