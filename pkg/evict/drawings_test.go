package evict

import (
	"os"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// TestCommentsDrawTheTables: the comments of the progress of a victim and of the stage of a
// plan show their tables.
func TestCommentsDrawTheTables(t *testing.T) {
	for file, want := range map[string]string{"victim.go": ofVictim.String(), "plan.go": ofPlan.String()} {
		if text := string(expect.Get(os.ReadFile(file))(t)); !strings.Contains(text, "//\n"+want+"type ") {
			t.Errorf("%s does not show this table:\n%s", file, want)
		}
	}
}
