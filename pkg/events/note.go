package events

import "strings"

// maxNote is what the API server takes as the note of an event, in bytes.
const maxNote = 1024

// Note makes a text short enough for an event, keeping its beginning.
func Note(s string) string {
	if len(s) <= maxNote {
		return s
	}
	return strings.ToValidUTF8(s[:maxNote-3], "") + "..."
}
