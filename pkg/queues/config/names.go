package config

import (
	"regexp"
	"strings"
)

// RootName is the name and the path of the root queue.
const RootName = "root"

// Qualified tells whether a name is a full path below root.
func Qualified(name string) bool { return strings.HasPrefix(name, RootName+".") }

// wildcard stands for every user or group without a limit of its own.
const wildcard = "*"

var (
	queueName = regexp.MustCompile(`^[a-zA-Z0-9_:#/@-]{1,64}$`)
	userName  = regexp.MustCompile(`^[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?$`)
	groupName = regexp.MustCompile(`^[_a-zA-Z][a-zA-Z0-9:_.-]*$`)
)

// queueNameAdvice completes the sentence "... is not a queue name:".
const queueNameAdvice = "use 1 to 64 letters, digits and - _ : # / @"

// nameChars are the characters of the names of users and groups besides letters and digits.
var nameChars = map[string]string{"user": "_ - . : # / @, at the end also $", "group": "_ - . :"}

// ValidQueueName tells whether the text may be the name of a queue, one segment
// of a path: 1 to 64 letters, digits and - _ : # / @. Case does not matter.
func ValidQueueName(name string) bool { return queueName.MatchString(name) }

// EscapeDots replaces each dot of a user, namespace, tag or provided name by "_dot_": the
// result is one segment of a path.
func EscapeDots(name string) string { return strings.ReplaceAll(name, ".", "_dot_") }

// segment returns the part of a path for a name, quoted where it is no name, so
// that it cannot be taken for something else.
func segment(name string) string {
	if ValidQueueName(name) {
		return strings.ToLower(name)
	}
	return quote(name)
}
