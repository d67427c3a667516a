package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// What upstream's election adds to the lease: a standby looks at it once in a retry
// period, which is stretched by up to 1.2 of itself, so every 0.5 to 1.1 s. So much passes
// at most until it sees the last renewal, then the lease has to run out, 3 s, and again so
// much at most until it looks: 1.1 + 3 + 1.1 = 5.2 s from the last renewal to the lease.
//
// A machine that does other things, too, delays what is due. So one round in ten may take
// longer than 5.2 + 1.5 = 6.7 s from the last renewal (one of fewer than ten, too), and
// none may act later than 5.2 + 5 = 10.2 s after the kill. A standby that counts a longer
// lease is told from a machine that is late by its looks, in any round: it looks, and does
// not take what has run out 1 s ago. That second is for an answer that the journal has
// before the standby does.
const (
	looksWithin   = retryPeriod * 22 / 10
	takeoverTime  = looksWithin + leaseDuration + looksWithin
	takeoverSlack = 1500 * time.Millisecond
	takeoverMost  = takeoverTime + 5*time.Second
	idleSlack     = time.Second
)

// look is one of a standby at the lease. Upstream takes the lease, if it does, after a look.
type look struct {
	asked, at time.Time // as of a deed
	tried     bool      // to take the lease then
}

// takeover is what the journals say of one round.
type takeover struct {
	name    string
	renewed time.Time // the killed one had renewed the lease last
	killed  time.Time
	looks   []look    // of the standby, from the kill until it had the lease
	took    time.Time // the standby had the lease
}

// looksUntil are its looks at the lease after the leader was killed, and whether it
// tried to take it.
func (r *replica) looksUntil(killed, took time.Time) []look {
	var out []look
	for _, d := range r.journal.between(killed, time.Time{}, deed.isOfLease) {
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

// idle says at which look the standby let the lease lie though it had run out, if it did.
// It cannot count from later than its first look after the kill: the dead renew nothing.
func (o *takeover) idle() string {
	for _, l := range o.looks {
		over := l.asked.Sub(o.looks[0].at)
		if over > leaseDuration+idleSlack && !l.tried {
			return fmt.Sprintf("%s: the standby looked at the lease %v after it had seen the last renewal, and did not take it", o.name, over)
		}
	}
	return ""
}

// judgeTakeovers says what is wrong with when the standby had the lease.
func judgeTakeovers(rounds []takeover) []string {
	var wrong, late []string
	var afterKill []time.Duration
	for _, o := range rounds {
		if idle := o.idle(); idle != "" {
			wrong = append(wrong, idle)
		}
		if over := o.took.Sub(o.renewed); over > takeoverTime+takeoverSlack {
			late = append(late, fmt.Sprintf("%s: %v", o.name, over))
		}
		afterKill = append(afterKill, o.took.Sub(o.killed))
	}
	if most := max(1, len(rounds)/10); len(late) > most {
		wrong = append(wrong, fmt.Sprintf("in %d of %d rounds, want at most %d, the standby had the lease later than %v and a slack of %v after the last renewal: %s",
			len(late), len(rounds), most, takeoverTime, takeoverSlack, strings.Join(late, "; ")))
	}
	if slices.Sort(afterKill); afterKill[len(afterKill)/2] > takeoverTime {
		wrong = append(wrong, fmt.Sprintf("half of the time the standby had the lease later than %v after the kill", takeoverTime))
	}
	return wrong
}

// imagined is a round in which a leader that renewed the lease at 0 s is killed at 0.3 s,
// and a standby looks every so often and takes a lease that is so long by its count.
func imagined(every, lease time.Duration) takeover {
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
	good := imagined(often, leaseDuration)
	refused := good // and taken with the next look
	refused.took = good.took.Add(often)
	refused.looks = append(slices.Clone(good.looks), look{asked: refused.took.Add(-time.Millisecond), at: refused.took, tried: true})
	slow := imagined(looksWithin, leaseDuration)
	seldom, seldomer := imagined(2400*time.Millisecond, leaseDuration), imagined(3*time.Second, leaseDuration)
	among := func(n int, others ...takeover) []takeover {
		return append(slices.Repeat([]takeover{good}, n-len(others)), others...)
	}
	for _, test := range []struct {
		name   string
		rounds []takeover
		want   []string // each in a finding of its own
	}{
		{"as upstream does it", among(5), nil},
		{"as seldom as upstream looks", among(3, slow, slow, slow), nil},
		{"a write that failed", among(5, refused), nil},
		{"twice the lease, once", among(50, imagined(often, 2*leaseDuration)), []string{"did not take it"}},
		{"twice the lease, looking all the time", among(50, imagined(retryPeriod, 2*leaseDuration)), []string{"did not take it"}},
		{"twice the lease, as seldom as upstream looks", among(50, imagined(looksWithin, 2*leaseDuration)), []string{"did not take it"}},
		{"half of it more, and twice the lease", among(50, imagined(retryPeriod, 3*leaseDuration/2), imagined(often, 2*leaseDuration)), []string{"did not take it", "did not take it"}},
		{"a late machine, once", among(5, seldomer), nil},
		{"a late machine, one in ten", among(50, slices.Repeat([]takeover{seldomer}, 5)...), nil},
		{"too late, twice of five", among(5, seldomer, seldomer), []string{"in 2 of 5 rounds, want at most 1"}},
		{"too late, six of fifty", among(50, slices.Repeat([]takeover{seldomer}, 6)...), []string{"in 6 of 50 rounds, want at most 5"}},
		{"late most of the time", among(5, seldom, seldom, seldom), []string{"half of the time"}},
	} {
		got := judgeTakeovers(test.rounds)
		if !slices.EqualFunc(got, test.want, strings.Contains) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
