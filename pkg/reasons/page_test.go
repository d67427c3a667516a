package reasons

import (
	"flag"
	"fmt"
	"os"
	"slices"
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

// page is the page of the table.
func page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, e := range Table() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.Code, e.Meaning+notes[e.Code], e.Remedy)
	}
	return b.String()
}

func TestPageSaysWhatTheTableSays(t *testing.T) {
	want := page()
	if *rewrite {
		expect.OK(t, os.WriteFile(pagePath, []byte(want), 0o644))
	}
	got := expect.Get(os.ReadFile(pagePath))(t)
	expect.Same(t, "the page and the table (-) differ; make it anew with: go test ./pkg/reasons -rewrite", want, string(got))
}

const troubleshootingPath = "../../docs/troubleshooting.md"

// untold lists the codes of a table that a page has no section for, or one that
// does not say what the table says; and sections for codes that are not there.
func untold(page string, entries []Entry) []string {
	var out []string
	sections := map[string]string{}
	for i, section := range strings.Split(page, "\n### `") {
		if code, text, found := strings.Cut(section, "`\n"); i > 0 && found {
			sections[code] = text
		}
	}
	for _, e := range entries {
		text, found := sections[string(e.Code)]
		switch {
		case !found:
			out = append(out, string(e.Code)+" has no section")
		case !strings.Contains(text, e.Meaning):
			out = append(out, string(e.Code)+" does not say what it means: "+e.Meaning)
		case !strings.Contains(text, "**Do:** "+e.Remedy):
			out = append(out, string(e.Code)+" does not say what to do: "+e.Remedy)
		case strings.TrimSpace(text) == e.Meaning+"\n\n**Do:** "+e.Remedy:
			out = append(out, string(e.Code)+" says nothing that the table does not")
		}
		delete(sections, string(e.Code))
	}
	for code := range sections {
		out = append(out, code+" is no code any more")
	}
	slices.Sort(out)
	return out
}

func TestTroubleshootingHasEveryCode(t *testing.T) {
	page := expect.Get(os.ReadFile(troubleshootingPath))(t)
	for _, wrong := range untold(string(page), Table()) {
		t.Errorf("%s: %s", troubleshootingPath, wrong)
	}
}

func TestWrongTroubleshootingPagesAreFound(t *testing.T) {
	page := "# Page\n\n### `Good`\n\nIt is good.\n\nLook.\n\n**Do:** Nothing.\n\n### `Bare`\n\nIt is bare.\n\n**Do:** Less.\n\n### `Vague`\n\nHm.\n\n**Do:** More.\n\n### `Old`\n\nGone.\n"
	entries := []Entry{{"Good", "It is good.", "Nothing."}, {"Bare", "It is bare.", "Less."}, {"Vague", "It is clear.", "More."}, {"New", "It is new.", "Look."}}
	want := []string{"Bare says nothing that the table does not", "New has no section", "Old is no code any more", "Vague does not say what it means: It is clear."}
	expect.Same(t, "untold", want, untold(page, entries))
}
