package scenario

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

const stories = "../../pkg/planner/testdata"

// Every plan of every file is a case, and its asker is nowhere in its state.
func TestCases(t *testing.T) {
	cases := Cases(t, stories)
	expect.That(t, len(cases) >= 120, "only %d cases", len(cases))
	names := map[string]bool{}
	kinds := map[planner.Outcome]int{}
	for _, c := range cases {
		names[c.Name] = true
		kinds[c.Want.Kind]++
		expect.That(t, c.Want.Asker == c.Ask.Name && c.Ask.Request[resources.Pods] == 1,
			"%s: %+v wants %v", c.Name, c.Ask, c.Want)
		expect.That(t, len(c.State.Nodes) > 0, "%s has no nodes", c.Name)
		for i := range c.State.Pods {
			expect.That(t, c.State.Pods[i].Name != c.Ask.Name, "%s: %s also runs", c.Name, c.Ask.Name)
		}
	}
	expect.Same(t, "names, each of one case", len(cases), len(names))
	expect.That(t, kinds[planner.Preempt] >= 60 && kinds[planner.Refuse] >= 40 && kinds[planner.Wait] >= 1,
		"kinds of outcomes: %v", kinds)
}

func TestWrongStoriesAreRefused(t *testing.T) {
	const begin = "queues\nroot\n  a\n----\n\nnode n1 vcore=1\n----\n\n"
	for text, want := range map[string]string{
		"dance x\n----\n":                              "what is dance",
		begin + "ask p queue=root.a loud\n----\n":      "what is [loud]",
		begin + "pods\nx queue=root.a node=n2\n----\n": "no such node",
		begin + "plan p\n----\n":                       "p does not ask",
	} {
		story := Tell(func(*State, Ask, bool) (Outcome, string, error) { return Outcome{}, "", nil })
		var err error
		datadriven.RunTestFromString(t, text, func(_ *testing.T, d *datadriven.TestData) string {
			if err == nil {
				_, err = story.Command(d)
			}
			return ""
		})
		expect.Fails(t, err, want)
	}
	expect.Refused(ReadOutcome("p1", "preempt for p1 on n1, short of vcore\n"))(t, "has no victims")
}
