package history_test

import (
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
)

func TestCauseOfVerdict(t *testing.T) {
	const told = "queue root.team-1: hugepages-2Mi used 3, requested 1Gi, max 4"
	for _, c := range []struct {
		name, text string
		same       bool
	}{
		{"the same", told, true},
		{"other amounts", "queue root.team-1: hugepages-2Mi used -3500m, requested 2Gi, max 40", true},
		{"what the amounts contain", "queue root.team-1: hugepages-2Mi used 3 (with pods about to be placed), requested 1Gi, max 4", true},
		{"another queue", "queue root.team-2: hugepages-2Mi used 3, requested 1Gi, max 4", false},
		{"another type", "queue root.team-1: hugepages-1Gi used 3, requested 1Gi, max 4", false},
		{"another subject", "user root.team-1: hugepages-2Mi used 3, requested 1Gi, max 4", false},
		{"no end", "queue root.team-1: hugepages-2Mi used 3, requested 1Gi", false},
		{"nothing", "", false},
	} {
		if same := history.CauseOfVerdict(told) == history.CauseOfVerdict(c.text); same != c.same {
			t.Errorf("%s: the same cause: %v, want %v", c.name, same, c.same)
		}
	}
}

func TestCausesAreKnown(t *testing.T) {
	for _, text := range []string{"", "1", "queue root.a", "\x00"} {
		if history.CauseOfVerdict(text) == history.UnknownCause || history.CauseOfSentence(text) == history.UnknownCause {
			t.Errorf("%q has the cause that stands for none", text)
		}
	}
	if history.CauseOfSentence("line 1") == history.CauseOfSentence("line 2") {
		t.Error("a sentence that never changes by itself has numbers that count")
	}
}
