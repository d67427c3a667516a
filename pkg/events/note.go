package events

import "strings"

// maxNote is what the API server takes as the note of an event, in bytes.
const maxNote = 1024

// more stands for what a note leaves out.
const more = "..."

// Note makes a text fit for an event: valid UTF-8, and short enough, keeping
// its beginning.
func Note(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxNote {
		return s
	}
	return strings.ToValidUTF8(s[:maxNote-len(more)], "") + more
}
