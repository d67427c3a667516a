package forecast

import (
	"cmp"
	"slices"
)

// Status says what a change of the configuration does to a finding.
type Status string

// The statuses of findings that were compared.
const (
	New  Status = "new"
	Kept Status = "as before"
	Gone Status = "no longer"
)

// Compare returns the findings of both forecasts, each with its status: those of
// after with the numbers of after, then what is gone, sorted as in a [Forecast].
func Compare(before, after Forecast) Forecast {
	return Forecast{
		OverMax: compare(before.OverMax, after.OverMax, func(o *OverMax) (*Status, key) {
			return &o.Status, key{o.Queue, o.Type}
		}),
		Unmet: compare(before.Unmet, after.Unmet, func(u *Unmet) (*Status, key) {
			return &u.Status, key{u.Queue, u.Type}
		}),
		Stranded: compare(before.Stranded, after.Stranded, func(s *Stranded) (*Status, key) {
			return &s.Status, key{s.Queue, string(s.Cause)}
		}),
		Losers: compare(before.Losers, after.Losers, func(l *Loser) (*Status, key) {
			return &l.Status, key{l.Queue, l.Type}
		}),
	}
}

// Worse tells whether something is new that needs attention before the change is made.
// That others may preempt a queue does not in itself need it.
func (f Forecast) Worse() bool {
	return slices.ContainsFunc(f.OverMax, func(o OverMax) bool { return o.Status == New }) ||
		slices.ContainsFunc(f.Unmet, func(u Unmet) bool { return u.Status == New }) ||
		slices.ContainsFunc(f.Stranded, func(s Stranded) bool { return s.Status == New })
}

// key says which findings are the same one.
type key struct{ queue, about string }

func compare[T any](before, after []T, of func(*T) (*Status, key)) []T {
	old := map[key]bool{}
	for i := range before {
		_, k := of(&before[i])
		old[k] = true
	}
	out := []T{}
	now := map[key]bool{}
	for _, finding := range after {
		status, k := of(&finding)
		*status = New
		if old[k] {
			*status = Kept
		}
		now[k] = true
		out = append(out, finding)
	}
	for _, finding := range before {
		status, k := of(&finding)
		if now[k] {
			continue
		}
		*status = Gone
		out = append(out, finding)
	}
	slices.SortStableFunc(out, func(a, b T) int {
		_, ka := of(&a)
		_, kb := of(&b)
		return cmp.Or(cmp.Compare(ka.queue, kb.queue), cmp.Compare(ka.about, kb.about))
	})
	return out
}
