package reasons

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

var rewrite = flag.Bool("rewrite", false, "write the page of reasons as the table has them")

const pagePath = "../../docs/reasons.md"

const pageHead = `# Why a pod waits

<!-- Made from pkg/reasons/table.go: go test ./pkg/reasons -rewrite -->

A pod that waits carries the pod condition ` + "`" + AdmittedCondition + "`" + ` with status False. The
condition's reason is one of the codes below, and its message says which queue,
user or rule it is about, with the numbers of the case, and what to do. The same is
in an event of the pod, and in REST. ` + "`kubectl describe pod`" + ` shows both.

While a node is held for a pod, its condition ` + "`paddock.io/NodeHeld`" + ` is True, with reason
` + "`MakingRoom`" + ` or, of a DaemonSet pod, also ` + "`WaitingForRoom` or `RoomAwaited`" + `; it is False, with the reason why the hold ended, once
there is none any more.

Some codes are warnings for which nothing waits: they appear as events only, on
the pod, the namespace or the ConfigMap they are about.

| code | what it means | what to do |
|---|---|---|
`

// notes are added on the page to the meaning of a code that another condition of a pod has, too.
var notes = map[Code]string{
	SchedulingGated: " `kubectl get pods` shows this code also for pods without gates: a quota, the PodGroup or a missing queue keeps such a pod out of the " +
		"[demand](autoscalers.md#for-which-pods-nodes-are-added), see its condition `" + AdmittedCondition + "`.",
}

// page is the troubleshooting page of a table.
func page(entries []Entry) string {
	var b strings.Builder
	b.WriteString(pageHead)
	cell := strings.NewReplacer("|", `\|`)
	for _, e := range entries {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.Code, cell.Replace(e.Meaning)+notes[e.Code], cell.Replace(e.Remedy))
	}
	return b.String()
}

func TestPageSaysWhatTheTableSays(t *testing.T) {
	want := page(Table())
	if *rewrite {
		expect.OK(t, os.WriteFile(pagePath, []byte(want), 0o644))
	}
	got, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatalf("%v; make it with: go test ./pkg/reasons -rewrite", err)
	}
	expect.Same(t, "the page and the table (-) differ; make it anew with: go test ./pkg/reasons -rewrite", want, string(got))
}

func TestPage(t *testing.T) {
	got := page([]Entry{{"Good", "It is a|b.", "Nothing."}, {"Bad", "It is bad.", "Repair it."}})
	want := pageHead + "| `Good` | It is a\\|b. | Nothing. |\n| `Bad` | It is bad. | Repair it. |\n"
	expect.Same(t, "", want, got)
}
