package store

import "testing"

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
		if same := causeOfVerdict(told) == causeOfVerdict(c.text); same != c.same {
			t.Errorf("%s: the same cause: %v, want %v", c.name, same, c.same)
		}
	}
}

func TestCausesAreKnown(t *testing.T) {
	for _, text := range []string{"", "1", "queue root.a", "\x00"} {
		if causeOfVerdict(text) == unknownCause || causeOfSentence(text) == unknownCause {
			t.Errorf("%q has the cause that stands for none", text)
		}
	}
	if causeOfSentence("line 1") == causeOfSentence("line 2") {
		t.Error("a sentence that never changes by itself has numbers that count")
	}
}
