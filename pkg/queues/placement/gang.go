package placement

import "strings"

// Gang says whether a pod is part of a gang, and how strictly.
type Gang uint8

const (
	// GangNone is a pod that is scheduled on its own.
	GangNone Gang = iota
	// GangSoft is a member of a gang that may also start pod by pod.
	GangSoft
	// GangHard is a member of a gang that starts as a whole or not at all.
	GangHard
)

// gangOf reads the gang annotations of a pod. It is tolerant, because the content of the
// groups is not used yet: what cannot be read still tells that a gang was wanted, and a
// wish for Hard must never get lost.
func gangOf(annotations map[string]string) Gang {
	switch {
	case annotations[KeyTaskGroupName] == "" && !hasGroups(annotations[KeyTaskGroups]):
		return GangNone
	case wantsHard(annotations[KeyPolicyParameters]):
		return GangHard
	}
	return GangSoft
}

// hasGroups tells whether the task-groups annotation lists anything: false when
// it is absent, null or an empty list. It reads no JSON, because a text of 250 KB would take
// milliseconds under the store's lock.
func hasGroups(text string) bool {
	text = strings.TrimSpace(text)
	inside, isList := strings.CutPrefix(text, "[")
	empty := isList && strings.Trim(inside, " \t\r\n") == "]"
	return text != "" && text != "null" && !empty
}

// wantsHard reads "name=value" pairs separated by white space; of a pair that is
// repeated the last counts.
func wantsHard(parameters string) bool {
	hard := false
	for pair := range strings.FieldsSeq(parameters) {
		if name, value, _ := strings.Cut(pair, "="); strings.EqualFold(name, "gangSchedulingStyle") {
			hard = strings.EqualFold(value, "Hard")
		}
	}
	return hard
}
