package integration

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// updateExplanations rewrites the kept answers from the answers of the run: go test -run
// Explanations ./test/integration -update-explanations.
var updateExplanations = flag.Bool("update-explanations", false, "write testdata/explain from what the scheduler answers")

// place is the field of an answer that must have the code.
type place string

const (
	// asReason: it is why the pod does not run, or has to leave.
	asReason place = "reason"
	// asNoRoom: it is why no room is being made for the pod now.
	asNoRoom place = "makingRoom.reason"
	// asRefusal: it is what the last plan to make room for it came to.
	asRefusal place = "makingRoom.lastRefusal"
	// asHoldEnd: it is why it lost the node that it held.
	asHoldEnd place = "lastHold.reason"
)

// codeAt returns the code at a place of an answer; empty for none.
func codeAt(x *documents.Explanation, at place) reasons.Code {
	of := func(r *documents.Reason) reasons.Code {
		if r == nil {
			return ""
		}
		return reasons.Code(r.Code)
	}
	switch {
	case at == asReason:
		return of(x.Reason)
	case at == asNoRoom && x.Room != nil:
		return of(x.Room.Reason)
	case at == asRefusal && x.Room != nil:
		return of(x.Room.LastRefusal)
	case at == asHoldEnd && x.LastHold != nil:
		return x.LastHold.Reason
	}
	return ""
}

// says tells whether an answer is about a code: the code is at its place, and the answer
// says what to do about it. The end of a hold, which is over, needs no remedy.
func says(x *documents.Explanation, code reasons.Code, at place) bool {
	passes, never := reasons.Reason{Code: code}.Remedy(), reasons.Reason{Code: code, Never: true}.Remedy()
	if code == reasons.Preempted && x.ChosenBy == nil {
		return false // the record lags a moment
	}
	return passes != "" && x.Summary != "" && codeAt(x, at) == code &&
		(at == asHoldEnd || slices.Contains(x.ToDo, passes) || slices.Contains(x.ToDo, never))
}

// answerFile returns the file with the kept answer for a code.
func answerFile(code reasons.Code) string {
	return filepath.Join("testdata", "explain", string(code)+".json")
}

// awaitExplained waits until a pod is explained by a code, with what to do, and compares
// the answer with the kept one.
func (e *env) awaitExplained(p *corev1.Pod, code reasons.Code, at place) *documents.Explanation {
	e.Helper()
	file := answerFile(code)
	kept, err := os.ReadFile(file)
	if err != nil && !*updateExplanations {
		e.Fatal(err)
	}
	var x *documents.Explanation
	var last []byte
	same := 0
	eventually(e, patience, fmt.Sprintf("pod %s is explained by %s, as in %s", p.Name, code, file), func() (bool, string) {
		if x = e.explanation(e.Context(), p); x == nil {
			return false, "it is not known"
		}
		answer := x
		if at == asHoldEnd { // the present state of the pod is not compared
			answer = &documents.Explanation{PodName: x.PodName, LastHold: x.LastHold}
		}
		text := e.settled(answer)
		if p.GenerateName != "" {
			text = bytes.ReplaceAll(text, []byte(p.Name), []byte(p.GenerateName+"NAME"))
		}
		if !says(x, code, at) {
			return false, string(text)
		}
		if !*updateExplanations {
			return bytes.Equal(text, kept), cmp.Diff(string(kept), string(text))
		}
		if same++; !bytes.Equal(text, last) {
			last, same = text, 0
		}
		return same > 10, string(text)
	})
	if *updateExplanations && last != nil {
		e.ok(os.MkdirAll(filepath.Dir(file), 0o755))
		e.ok(os.WriteFile(file, last, 0o600))
	}
	return x
}

// The parts of answers that depend on the moment and the run, and their replacements.
var (
	uidText  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timeText = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	restText = regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?s\b`)
	// How many holds a pod has lost by the time of the request differs between runs.
	lostText = regexp.MustCompile(`; (this is loss \d+ in a row, so )?no plan is made for the pod for [0-9hms.]*[hms]`)
	planName = regexp.MustCompile(`UID-\d+`)
	refusals = regexp.MustCompile(`none of \d+ nodes could take the pod: [^;"]+`) // other tests have nodes, too
	numbered = regexp.MustCompile(`\d+(/\d+)? (nodes? |Insufficient|Preemption)`)
)

// keptQuota is the kept part of a queue: all but the usage of others.
type keptQuota struct {
	Queue           string            `json:"queue"`
	Guaranteed      map[string]int64  `json:"guaranteed,omitempty"`
	Max             map[string]int64  `json:"max,omitempty"`
	MaxApplications uint64            `json:"maxApplications,omitempty"`
	UnderGuarantee  []string          `json:"underGuarantee,omitempty"`
	Refuses         *documents.Reason `json:"refuses,omitempty"`
}

// settled returns an answer as it is kept: without the parts that depend on the time, on
// other pods, or on generated names.
func (e *env) settled(x *documents.Explanation) []byte {
	e.Helper()
	y := *x
	y.Attempts, y.LastAttempt, y.Window, y.Order, y.LastDecision, y.ChosenBy = 0, "", nil, nil, nil, nil
	if x.Room != nil {
		room := *x.Room
		room.LastPlan, room.NextLook = "", ""
		y.Room = &room
	}
	if x.Hold != nil {
		hold := *x.Hold
		hold.WaitsFor = slices.Clone(hold.WaitsFor) // they are sorted by UID
		slices.SortFunc(hold.WaitsFor, func(a, b documents.PodName) int { return strings.Compare(a.Name, b.Name) })
		y.Hold = &hold
	}
	kept := struct {
		*documents.Explanation
		Quota []keptQuota `json:"quota,omitempty"`
	}{Explanation: &y}
	for _, q := range x.Quota {
		if q.Queue == "root" {
			q.Max = nil // resources of the nodes, including those of other tests
		}
		kept.Quota = append(kept.Quota, keptQuota{q.Queue, q.Guaranteed, q.Max, q.MaxApplications, q.UnderGuarantee, q.Refuses})
	}
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	e.ok(out.Encode(kept))
	return e.unnamed(text.Bytes())
}

// unnamed replaces the names and counts that differ between runs.
func (e *env) unnamed(text []byte) []byte {
	text = uidText.ReplaceAll(text, []byte("UID"))
	text = lostText.ReplaceAll(text, nil)
	text = planName.ReplaceAll(text, []byte("PLAN"))
	text = timeText.ReplaceAll(text, []byte("TIME"))
	text = restText.ReplaceAll(text, []byte("SOME TIME"))
	text = refusals.ReplaceAll(text, []byte("none of N nodes could take the pod: COUNTS"))
	text = numbered.ReplaceAll(text, []byte("N $2"))
	return bytes.ReplaceAll(text, []byte(e.id), []byte("TEST"))
}

// TestACodeElsewhereIsNoAnswer: a code counts only at its place, and with its remedy.
func TestACodeElsewhereIsNoAnswer(t *testing.T) {
	entry, _ := reasons.Explain(reasons.OverMax)
	over := &documents.Reason{Code: string(entry.Code)}
	right := documents.Explanation{Summary: "s", Reason: over, ToDo: []string{entry.Remedy}}
	if !says(&right, reasons.OverMax, asReason) {
		t.Error("the right answer is not taken")
	}
	for name, spoil := range map[string]func(x *documents.Explanation){
		"only as a limit":       func(x *documents.Explanation) { x.Reason, x.Limits = nil, over },
		"only as a refusal":     func(x *documents.Explanation) { x.Reason, x.Room = nil, &documents.ExplainedRoom{LastRefusal: over} },
		"only of a queue":       func(x *documents.Explanation) { x.Reason, x.Quota = nil, []documents.QueueQuota{{Refuses: over}} },
		"nothing to do":         func(x *documents.Explanation) { x.ToDo = nil },
		"what to do of another": func(x *documents.Explanation) { x.ToDo = []string{"wait"} },
		"no summary":            func(x *documents.Explanation) { x.Summary = "" },
		"another code":          func(x *documents.Explanation) { x.Reason = &documents.Reason{Code: string(reasons.NoNodeFits)} },
	} {
		x := right
		if spoil(&x); says(&x, reasons.OverMax, asReason) {
			t.Errorf("%s: it counts", name)
		}
	}
}

// TestWhatIsKeptOfAnAnswer: the kept part is the same in each run, and has the essential
// facts.
func TestWhatIsKeptOfAnAnswer(t *testing.T) {
	answer := func(id, uid, at string, n int) (*env, *documents.Explanation) {
		return &env{T: t, id: id}, &documents.Explanation{
			PodName: documents.PodName{Namespace: id, Name: id + "-p", UID: uid}, Created: at, Attempts: n, Window: &documents.Window{Size: n},
			Reason: &documents.Reason{Message: fmt.Sprintf("%d/%d nodes are available: %d Insufficient cpu; uses 1 of 2 vcore; in 1h%dm3s", n, n, n, n)},
			Quota:  []documents.QueueQuota{{Queue: "root", Max: map[string]int64{"vcore": int64(n)}}, {Queue: "root.a", Max: map[string]int64{"vcore": 1}}},
		}
	}
	e, first := answer("t01", "0b6a2f3e-0000-4000-8000-000000000001", time.Unix(1, 5).UTC().Format(time.RFC3339Nano), 1)
	one := e.settled(first)
	e, second := answer("t22", "0b6a2f3e-0000-4000-8000-000000000002", time.Unix(1e9, 0).UTC().Format(time.RFC3339Nano), 12)
	if two := e.settled(second); !bytes.Equal(one, two) {
		t.Error(cmp.Diff(string(one), string(two)))
	}
	second.Reason.Message = "1/1 nodes are available: 1 Insufficient cpu; uses 2 of 2 vcore; in 1h2m3s"
	if two := e.settled(second); bytes.Equal(one, two) {
		t.Errorf("what matters is not kept: %s", two)
	}
}
