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
		OverMax:  compare(before.OverMax, after.OverMax, (*OverMax).id),
		Unmet:    compare(before.Unmet, after.Unmet, (*Unmet).id),
		Stranded: compare(before.Stranded, after.Stranded, (*Stranded).id),
		Losers:   compare(before.Losers, after.Losers, (*Loser).id),
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

func (o *OverMax) id() (*Status, key)  { return &o.Status, key{o.Queue, o.Type} }
func (u *Unmet) id() (*Status, key)    { return &u.Status, key{u.Queue, u.Type} }
func (s *Stranded) id() (*Status, key) { return &s.Status, key{s.Queue, string(s.Cause)} }
func (l *Loser) id() (*Status, key)    { return &l.Status, key{l.Queue, l.Type} }

// sorted sorts findings as in a [Forecast], and keeps those with the same key in order.
func sorted[T any](findings []T, id func(*T) (*Status, key)) []T {
	slices.SortStableFunc(findings, func(a, b T) int {
		_, ka := id(&a)
		_, kb := id(&b)
		return cmp.Or(cmp.Compare(ka.queue, kb.queue), cmp.Compare(ka.about, kb.about))
	})
	return findings
}

func compare[T any](before, after []T, id func(*T) (*Status, key)) []T {
	out := append(make([]T, 0, len(after)+len(before)), after...) // has room: statuses are not copied
	now := map[key]*Status{}
	for i := range out {
		status, k := id(&out[i])
		*status, now[k] = New, status
	}
	for _, finding := range before {
		status, k := id(&finding)
		if now[k] != nil {
			*now[k] = Kept
			continue
		}
		*status = Gone
		out = append(out, finding)
	}
	return sorted(out, id)
}
