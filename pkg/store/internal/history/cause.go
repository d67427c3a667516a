package history

// Cause distinguishes reasons of the same code by queue and type, but not by current
// amounts.
type Cause uint64

// UnknownCause is the cause of a reason reported by an earlier process.
const UnknownCause Cause = 0

// noWords is the start value of the hash, which is FNV-1a.
const noWords Cause = 14695981039346656037

func (c Cause) with(b byte) Cause { return max((c^Cause(b))*1099511628211, UnknownCause+1) }

// CauseOfSentence hashes the whole text.
func CauseOfSentence(text string) Cause {
	sum := noWords
	for i := range len(text) {
		sum = sum.with(text[i])
	}
	return sum
}

// CauseOfVerdict skips words that are amounts, commas, and text in brackets, which lists
// what the amounts contain. Digits in a name count, because only a word that begins with
// a digit is an amount.
func CauseOfVerdict(text string) Cause {
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
