package reasons

import "strings"

// maxNote is what the API server takes as the note of an event, in bytes.
const maxNote = 1024

// more stands for what a note leaves out.
const more = "..."

// invalid stands for bytes that are not UTF-8.
const invalid = "\uFFFD"

// Note makes a text fit for an event: valid UTF-8, and short enough, keeping
// its beginning.
func Note(s string) string { return shorten(s, maxNote) }

func shorten(s string, most int) string {
	s = strings.ToValidUTF8(s, invalid)
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(more)], "") + more
}

// Advice is what an administrator is told of a reason: its sentence and what to
// do about it. It is fit for an event; where it would be too long the sentence
// is cut, not the remedy.
func (r Reason) Advice() string {
	remedy := r.Remedy()
	if remedy == "" {
		return Note(r.Text)
	}
	sentence := strings.TrimRight(strings.ToValidUTF8(r.Text, invalid), ". \n")
	if sentence == "" {
		return remedy
	}
	room := maxNote - len(". ") - len(remedy)
	if len(sentence) > room {
		return shorten(sentence, room) + " " + remedy
	}
	return sentence + ". " + remedy
}
