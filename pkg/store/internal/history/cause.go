package history

import (
	"hash/fnv"
	"regexp"
)

// Cause distinguishes reasons of the same code by queue and type, but not by current
// amounts.
type Cause uint64

// UnknownCause is the cause of a reason reported by an earlier process.
const UnknownCause Cause = 0

// CauseOfSentence hashes the whole text.
func CauseOfSentence(text string) Cause {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // has no error
	return max(Cause(sum.Sum64()), UnknownCause+1)
}

// amounts are the words of a verdict that are amounts, text in brackets, which lists what
// the amounts contain, and what separates words. Digits in a name count, because only a
// word that begins with a digit is an amount.
var amounts = regexp.MustCompile(`\([^)]*\)|(^| )[-0-9][^ ]*|[ ,]`)

// CauseOfVerdict hashes a text without its amounts.
func CauseOfVerdict(text string) Cause {
	return CauseOfSentence(amounts.ReplaceAllString(text, ""))
}
