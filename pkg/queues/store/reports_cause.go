package store

// cause tells reasons of one code apart: by queue and type, not by how much is
// used at the moment.
type cause uint64

// unknownCause is that of a reason that an earlier process told.
const unknownCause cause = 0

// noWords is where the hash begins; it is FNV-1a.
const noWords cause = 14695981039346656037

func (c cause) with(b byte) cause { return max((c^cause(b))*1099511628211, unknownCause+1) }

// causeOf is the cause of what explain says of the pod. A verdict is taken as it
// was when the pod was last judged: that it is judged again is not our business.
func (s *Store) causeOf(p *pod) cause {
	switch p.state {
	case unplaced:
		if !s.started {
			return causeOfSentence(s.notStarted().Text)
		}
		return causeOfSentence(p.reason.Text)
	case waiting:
		if p.heldByTwin() { // it has no group, and nothing is told of it
			return causeOfSentence("")
		}
		if v := p.ask.Group().Verdict(); !v.OK() {
			return causeOfVerdict(v.Reason.Text)
		}
	}
	return causeOfSentence("")
}

// causeOfSentence takes every letter as it is.
func causeOfSentence(text string) cause {
	sum := noWords
	for i := range len(text) {
		sum = sum.with(text[i])
	}
	return sum
}

// causeOfVerdict leaves out the words that are amounts, commas, and what is in brackets,
// which says what the amounts contain. Digits in a name count: a word that is an
// amount begins with one.
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
