package store

import "github.com/paddock-scheduler/paddock/pkg/store/internal/state"

// cause distinguishes reasons of the same code by queue and type, but not by current
// amounts.
type cause uint64

// unknownCause is the cause of a reason reported by an earlier process.
const unknownCause cause = 0

// noWords is the start value of the hash, which is FNV-1a.
const noWords cause = 14695981039346656037

func (c cause) with(b byte) cause { return max((c^cause(b))*1099511628211, unknownCause+1) }

// causeOf is the cause of the reason that explain returns for the pod. It uses the last
// verdict and does not check quotas again.
func (s *Store) causeOf(p *pod) cause {
	switch p.state {
	case state.NoQueue:
		if !s.started {
			return causeOfSentence(s.notStarted().Text)
		}
		return causeOfSentence(p.reason.Text)
	case state.Queued:
		if p.heldByClass() { // it has no group in the order, and no report
			return causeOfSentence("")
		}
		if v := p.ask.Group().Verdict(); !v.OK() {
			return causeOfVerdict(v.Reason.Text)
		}
	}
	return causeOfSentence("")
}

// causeOfSentence hashes the whole text.
func causeOfSentence(text string) cause {
	sum := noWords
	for i := range len(text) {
		sum = sum.with(text[i])
	}
	return sum
}

// causeOfVerdict skips words that are amounts, commas, and text in brackets, which lists
// what the amounts contain. Digits in a name count, because only a word that begins with
// a digit is an amount.
func causeOfVerdict(text string) cause {
	sum := noWords
	begins, amount, brackets := true, false, 0
	for i := range len(text) {
		c := text[i]
		if begins {
			amount = '0' <= c && c <= '9' || c == '-'
		}
		begins = c == ' '
		switch {
		case c == '(':
			brackets++
		case c == ')':
			brackets--
		case !begins && !amount && brackets == 0 && c != ',':
			sum = sum.with(c)
		}
	}
	return sum
}
