package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// A standby takes the lease with its first look after the lease has run out. It looks
// once in a retry period, which upstream stretches by up to 1.2 times its length, so
// every 0.5 to 1.1 s. What follows from that, and what a machine with other work may add,
// is in docs/survival.md, "Two replicas on a real API server".
//
// A look with which the standby did not take a lease that has run out is right only if the
// standby, which counts from its own answers, had the answer later than the log.
const (
	looksWithin   = retryPeriod * 22 / 10
	takeoverSeen  = leaseDuration + looksWithin
	takeoverTime  = looksWithin + takeoverSeen
	takeoverSlack = 1500 * time.Millisecond
	takeoverMost  = takeoverTime + 5*time.Second
)

// look is a read of the lease by a standby. If upstream takes the lease, it does so after a look.
type look struct {
	asked, at time.Time // as of a deed
	tried     bool      // whether it then tried to take the lease
}

// takeover is one round according to the deeds of the replicas.
type takeover struct {
	name    string
	renewed time.Time // when the killed one last renewed the lease
	killed  time.Time
	looks   []look    // of the standby, from the kill until it had the lease
	took    time.Time // when the standby had the lease
}

// looksUntil returns the standby's looks at the lease after the leader was killed, and
// whether it tried to take it after each.
func (r *replica) looksUntil(killed, took time.Time) []look {
	var out []look
	for _, d := range r.deeds.between(killed, time.Time{}, deed.isOfLease) {
		switch {
		case d.asked.Before(killed) || d.asked.After(took):
		case d.leases():
			if len(out) > 0 {
				out[len(out)-1].tried = true
			}
		case d.succeeded():
			out = append(out, look{asked: d.asked, at: d.at})
		}
	}
	return out
}

// idle counts the looks with which the standby did not take the lease although it had run
// out. The standby counts from its first look after the kill at the latest, because the
// dead leader renews nothing.
func (o *takeover) idle() int {
	n := 0
	for _, l := range o.looks {
		if !l.tried && l.asked.Sub(o.looks[0].at) > leaseDuration {
			n++
		}
	}
	return n
}

// judgeTakeovers returns what is wrong with the times at which the standby had the lease.
func judgeTakeovers(rounds []takeover) []string {
	var wrong, idled, late []string
	var seen []time.Duration
	for _, o := range rounds {
		n := o.idle()
		if n > 0 {
			idled = append(idled, o.name)
		}
		if n > 1 {
			wrong = append(wrong, fmt.Sprintf("%s: with %d looks after the lease had run out the standby did not take it, want at most one", o.name, n))
		}
		if over := o.took.Sub(o.renewed); over > takeoverTime+takeoverSlack {
			late = append(late, fmt.Sprintf("%s: %v", o.name, over))
		}
		if len(o.looks) > 0 {
			seen = append(seen, o.took.Sub(o.looks[0].at))
		}
	}
	if most := max(1, len(rounds)/5); len(idled) > most {
		wrong = append(wrong, fmt.Sprintf("in %d of %d rounds, want at most %d, the standby looked at a lease that had run out and did not take it: %s",
			len(idled), len(rounds), most, strings.Join(idled, "; ")))
	}
	if most := max(1, len(rounds)/10); len(late) > most {
		wrong = append(wrong, fmt.Sprintf("in %d of %d rounds, want at most %d, the standby had the lease later than %v and a slack of %v after the last renewal: %s",
			len(late), len(rounds), most, takeoverTime, takeoverSlack, strings.Join(late, "; ")))
	}
	if slices.Sort(seen); len(seen) > 0 && seen[len(seen)/2] > takeoverSeen {
		wrong = append(wrong, fmt.Sprintf("half of the time the standby had the lease later than %v after its first look: %v", takeoverSeen, seen))
	}
	return wrong
}

// example is a round in which a leader that renewed the lease at 0 s is killed at 0.3 s,
// and a standby looks at an interval and takes a lease that has this age by its count.
func example(every, lease time.Duration) takeover {
	began := time.Unix(0, 0)
	o := takeover{name: fmt.Sprintf("every %v for %v", every, lease), renewed: began, killed: began.Add(300 * time.Millisecond)}
	for next := o.killed.Add(every / 2); o.took.IsZero(); next = next.Add(every) {
		l := look{asked: next, at: next.Add(10 * time.Millisecond)}
		if len(o.looks) > 0 && l.asked.Sub(o.looks[0].at) > lease {
			l.tried, o.took = true, l.at
		}
		o.looks = append(o.looks, l)
	}
	return o
}

// TestTakeoversAreJudged plants standbys that take the lease too late.
func TestTakeoversAreJudged(t *testing.T) {
	const often = 800 * time.Millisecond
	good := example(often, leaseDuration)
	refused := good // and taken with the next look
	refused.took = good.took.Add(often)
	refused.looks = append(slices.Clone(good.looks), look{asked: refused.took.Add(-time.Millisecond), at: refused.took, tried: true})
	slow := example(looksWithin, leaseDuration)
	answered := good // the answer reached the standby late: one look more
	answered.looks = slices.Clone(good.looks)
	last := len(answered.looks) - 1
	answered.looks[last].tried = false
	answered.took = answered.took.Add(often)
	answered.looks = append(answered.looks, look{asked: answered.took.Add(-time.Millisecond), at: answered.took, tried: true})
	seldom, seldomer := example(2400*time.Millisecond, leaseDuration), example(3*time.Second, leaseDuration)
	half, second := leaseDuration+500*time.Millisecond, leaseDuration+time.Second
	among := func(n int, others ...takeover) []takeover {
		return append(slices.Repeat([]takeover{good}, n-len(others)), others...)
	}
	const idle, idles, late, median = "did not take it, want at most one", "looked at a lease that had run out", "later than 5.2s and", "half of the time"
	for _, test := range []struct {
		name   string
		rounds []takeover
		want   []string // each in a finding of its own
	}{
		{"as upstream does it", among(5), nil},
		{"as seldom as upstream looks", slices.Repeat([]takeover{slow}, 5), nil},
		{"a write that failed", among(5, refused), nil},
		{"an answer that came late, once", among(5, answered), nil},
		{"an answer that came late, twice of five", among(5, answered, answered), []string{"in 2 of 5 rounds, want at most 1, " + "the standby " + idles}},
		{"an answer that came late, one in five", among(50, slices.Repeat([]takeover{answered}, 10)...), nil},
		{"half a second more than the lease", slices.Repeat([]takeover{example(retryPeriod, half)}, 5), []string{idles}},
		{"half a second more, as seldom as upstream looks", slices.Repeat([]takeover{example(looksWithin, half)}, 5), []string{idles, median}},
		{"a second more than the lease", slices.Repeat([]takeover{example(looksWithin, second)}, 5), []string{idles, median}},
		{"a second more than the lease, once", among(50, example(retryPeriod-10*time.Millisecond, second)), []string{idle}},
		{"twice the lease, once", among(50, example(often, 2*leaseDuration)), []string{idle}},
		{"twice the lease, as seldom as upstream looks", among(50, example(looksWithin, 2*leaseDuration)), []string{idle}},
		{"half of it more, and twice the lease", among(50, example(retryPeriod, 3*leaseDuration/2), example(often, 2*leaseDuration)), []string{idle, idle}},
		{"a late machine, once", among(5, seldomer), nil},
		{"a late machine, one in ten", among(50, slices.Repeat([]takeover{seldomer}, 5)...), nil},
		{"too late, twice of five", among(5, seldomer, seldomer), []string{"in 2 of 5 rounds, want at most 1, the standby had the lease " + late}},
		{"too late, six of fifty", among(50, slices.Repeat([]takeover{seldomer}, 6)...), []string{"in 6 of 50 rounds, want at most 5"}},
		{"late most of the time", among(5, seldom, seldom, seldom), []string{median}},
	} {
		got := judgeTakeovers(test.rounds)
		expect.That(t, slices.EqualFunc(got, test.want, strings.Contains),
			"%s: got %q, want %q", test.name, got, test.want)
	}
}
