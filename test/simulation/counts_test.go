package simulation_test

import (
	"fmt"
	"testing"
)

// counted is what histories count.
type counted int

const (
	cycles     counted = iota // of scheduling
	decided                   // decisions that were judged
	undecided                 // and those that could not be
	bound                     // binds whose node and queues were judged
	unbound                   // and those where others had touched one of them
	rests                     // looks at everything
	restless                  // those among them where PodGroups never came to rest
	strandings                // pods of default-scheduler that may have been stranded
	kindsCounted
)

// counts is how many of each there were.
type counts [kindsCounted]int64

func (c counts) String() string {
	return fmt.Sprintf("%d scheduling cycles; judged %d decisions and %d not, %d binds and %d not in full; %d rests, %d of them without rest; %d perhaps stranded",
		c[cycles], c[decided], c[undecided], c[bound], c[unbound], c[rests], c[restless], c[strandings])
}

func (s *simulation) count(what counted) { s.counts[what].Add(1) }

// counted is what was counted by now.
func (s *simulation) counted() counts {
	var c counts
	for i := range s.counts {
		c[i] = s.counts[i].Load()
	}
	return c
}

// enough finds fault with histories of which too little was judged.
func (c counts) enough(t *testing.T) {
	t.Helper()
	for _, share := range []struct {
		what      string
		part, all int64
		percent   int64
	}{
		{"decisions were judged", c[decided], c[decided] + c[undecided], 75},
		{"binds were judged in full", c[bound], c[bound] + c[unbound], 55},
		{"looks at everything were at rest", c[rests] - c[restless], c[rests], 95},
	} {
		if share.part*100 < share.all*share.percent {
			t.Errorf("%d of %d %s, want %d %%", share.part, share.all, share.what, share.percent)
		}
	}
}
