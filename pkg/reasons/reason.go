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
}

// New makes a reason with the sentence of format and args. It panics on a code
// that is not in the table: a programming error that tests find.
func New(code Code, format string, args ...any) Reason {
	if _, known := byCode[code]; !known {
		panic(fmt.Sprintf("reasons: code %q is not in the table", code))
	}
	return Reason{Code: code, Text: fmt.Sprintf(format, args...)}
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

// None tells whether the reason is the zero value: nothing was refused.
func (r Reason) None() bool { return r.Code == "" }

// String renders the reason as "Code: sentence", empty for none.
func (r Reason) String() string {
	if r.None() {
		return ""
	}
	return string(r.Code) + ": " + r.Text
}
