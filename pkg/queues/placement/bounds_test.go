package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestLongNamesOfUsers: a name of 200,000 bytes was kept for the pod, and shown in lists.
func TestLongNamesOfUsers(t *testing.T) {
	fits, long := strings.Repeat("x", 253), strings.Repeat("x", 254)
	most := strings.Repeat(" ", 1<<16-len(`{"user":"eve"}`)) + `{"user":"eve"}`
	for info, want := range map[string]string{
		most:       "",
		" " + most: "it has 65537 bytes, more than 65536",
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

// TestLongNamesInAnnotations: an application ID, or the queue of pods that share a generated ID,
// was part of the name of the application with all 200,000 bytes, and that is copied for each pod
// that plans see.
func TestLongNamesInAnnotations(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	id, why := Identify(Pod{Annotations: map[string]string{KeyApplicationID: long, KeyQueue: "root." + long}}, false)
	expect.That(t, why.None(), "a long application ID is refused: %v", why)
	expect.Same(t, "application ID", long[:253]+"...", id.Application)
	expect.That(t, len(id.Queue) < 7000, "the queue has %d bytes", len(id.Queue))
	_, why = Place([]config.Rule{{Kind: config.RuleProvided, Create: true}}, Request{Identity: id}, queues.NewDraft(queues.Settings{Settings: config.Settings{Name: config.RootName, Path: config.RootName}}))
	expect.That(t, why.Code == reasons.InvalidQueueName, "a queue with a long name: %v", why)
	deepest := config.RootName + strings.Repeat("."+long[:64], maxDepth-1)
	id, _ = Identify(Pod{Annotations: map[string]string{KeyQueue: deepest}}, false)
	expect.Same(t, "the longest path that may be right", deepest, id.Queue)
}

// TestTheDeepestQueueTakesPods: pods could not name a queue of queues.yaml below its 63rd level.
func TestTheDeepestQueueTakesPods(t *testing.T) {
	document := "partitions: [{queues: [{name: root, submitacl: '*', queues: " +
		strings.Repeat("[{name: a, queues: ", config.MaxDepth-1) + "[{name: a}]" + strings.Repeat("}]", config.MaxDepth-1) + "}]}]"
	tree := queues.NewDraftFrom(expect.Get(config.Parse([]byte(document)))(t))
	deepest := config.RootName + strings.Repeat(".a", config.MaxDepth)
	id, _ := Identify(Pod{Annotations: map[string]string{KeyQueue: deepest}}, false)
	result, why := Place([]config.Rule{{Kind: config.RuleProvided}}, Request{Identity: id}, tree)
	expect.That(t, result.Path == deepest, "%q: %v", result.Path, why)
}

// TestReasonsNameTheBounds: what to do about a refusal says how long a name may be, and how
// many levels a queue may have that a rule makes.
func TestReasonsNameTheBounds(t *testing.T) {
	for code, want := range map[reasons.Code]string{
		reasons.InvalidQueueName: fmt.Sprintf("up to %d levels", maxMade),
		reasons.InvalidUserInfo:  fmt.Sprintf("at most %d bytes and at most %d KiB in all", maxName, maxUserInfo>>10),
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
