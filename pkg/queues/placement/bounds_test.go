package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestLongNamesOfUsers: a name of 200,000 bytes was kept for the pod, and shown in lists.
func TestLongNamesOfUsers(t *testing.T) {
	fits, long := strings.Repeat("x", 253), strings.Repeat("x", 254)
	for info, want := range map[string]string{
		`{"user":"` + fits + `","groups":["` + fits + `"]}`: "",
		`{"user":"` + long + `"}`:                           "field user has 254 bytes, more than 253",
		`{"user":"eve","groups":["g","` + long + `"]}`:      "a name in field groups has 254 bytes, more than 253",
	} {
		_, why := Identify(Pod{Annotations: map[string]string{KeyUserInfo: info}}, false)
		var code reasons.Code
		if want != "" {
			code = reasons.InvalidUserInfo
		}
		expect.That(t, why.Code == code && strings.Contains(why.Text, want), "%q, want %q", why, want)
	}
}

// TestReasonsNameTheBounds: what to do about a refusal says how long a name may be, and how
// many levels a queue may have that a rule makes.
func TestReasonsNameTheBounds(t *testing.T) {
	for code, want := range map[reasons.Code]string{
		reasons.InvalidQueueName: fmt.Sprintf("up to %d levels", maxMade),
		reasons.InvalidUserInfo:  fmt.Sprintf("at most %d bytes", maxName),
	} {
		e, _ := reasons.Explain(code)
		expect.That(t, strings.Contains(e.Remedy, want), "%s: %q, want %q", code, e.Remedy, want)
	}
}

// String returns "none", "soft" or "hard".
func (g Gang) String() string {
	switch g {
	case GangSoft:
		return "soft"
	case GangHard:
		return "hard"
	}
	return "none"
}
