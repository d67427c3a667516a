package reasons

import "fmt"

// Code names a kind of refusal. Codes never change their meaning; they are
// metric labels and event reasons.
type Code string

// AdmittedCondition is the type of the pod condition that carries a code: its
// reason is the code while the condition is False.
const AdmittedCondition = "paddock.io/Admitted"

// Reason is a refusal: why a pod, an application or a configuration does not
// get what it asked for. The zero value is "no refusal".
type Reason struct {
	Code Code
	// Text is one sentence with the numbers and names of the case.
	Text string
	// Never is whether no waiting helps: what was asked for is alone more than what
	// refuses it. Only the codes for a max and for limits of resources have it.
	Never bool
}

// New makes a reason with the sentence of format and args. It panics on a code
// that is not in the table: a programming error that tests find.
func New(code Code, format string, args ...any) Reason {
	r := Brief(code)
	r.Text = fmt.Sprintf(format, args...)
	return r
}

// Brief is the reason with the code's general meaning as its sentence. It costs
// nothing to make.
func Brief(code Code) Reason {
	entry, known := Explain(code)
	if !known {
		panic(fmt.Sprintf("reasons: code %q is not in the table", code))
	}
	return Reason{Code: code, Text: entry.Meaning}
}

// OfHold is why a pod that holds a node waits: victims leave for it, or a note says why none
// may be chosen yet, or pods leave anyway.
func OfHold(victims int, note string) Code {
	switch {
	case victims > 0:
		return MakingRoom
	case note != "":
		return RoomAwaited
	}
	return WaitingForRoom
}

// NeverIf says, where never is true, that no waiting helps: the request alone is too large.
func (r Reason) NeverIf(never bool) Reason {
	if never {
		r.Never = true
		r.Text += ": it can never start, because the request alone is more"
	}
	return r
}

// Remedy says what users or administrators can do about the case; empty for a code that
// is not in the table. Where no waiting helps it does not tell people to wait.
func (r Reason) Remedy() string {
	if remedy, ok := neverRemedies[r.Code]; ok && r.Never {
		return remedy
	}
	entry, _ := Explain(r.Code)
	return entry.Remedy
}

// neverRemedies are those of reasons that do not pass by themselves.
var neverRemedies = map[Code]string{
	OverMax:        "Ask for less, or raise the max of that queue; waiting does not help.",
	OverUserLimit:  "Ask for less, or raise that limit of the user in queues.yaml; waiting does not help.",
	OverGroupLimit: "Ask for less, or raise that limit of the group in queues.yaml; waiting does not help.",
}

// None tells whether the reason is the zero value: nothing was refused.
func (r Reason) None() bool { return r.Code == "" }

// String renders the reason as "Code: sentence", empty for none.
func (r Reason) String() string {
	if r.None() {
		return ""
	}
	return string(r.Code) + ": " + r.Text
}

// IsQuota tells whether a code is that of a refusal which lasts until a queue, a user or a
// group uses less, whatever capacity nodes have.
func (c Code) IsQuota() bool {
	switch c {
	case OverMax, OverUserLimit, OverGroupLimit, MaxApplications, UserMaxApplications, GroupMaxApplications:
		return true
	}
	return false
}
