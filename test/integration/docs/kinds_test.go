package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// kind says how a command is tested, in the words of the table in docs/nightly.md.
type kind string

const (
	kindWritten kind = "as written"      // run at every change, with its prerequisites around it
	kindLater   kind = "nightly"         // run as it is written, by the nightly run
	kindLess    kind = "less of it"      // run, with fewer rounds than it says
	kindPart    kind = "a part"          // part of make test, or of the nightly run
	kindAnother kind = "by another test" // a test does the same
	kindRefused kind = "refused here"    // run, and the API server of the test refuses it
	kindNowhere kind = "nowhere"         // needs something that is missing here: there may be none
	kindName    kind = "a name"          // in a sentence, without its arguments
)

// kindOf returns how a command is tested; it is the same in the nightly run.
func kindOf(text string) kind {
	r, found := ruleAmong(rules, text)
	if !found {
		if r, found = ruleAmong(inFull, text); found && !r.less {
			return kindLater
		}
	}
	switch {
	case !found && needsRule(text):
		return kindNowhere
	case r.less:
		return kindLess
	case r.kind != "":
		return r.kind
	case r.refused != "":
		return kindRefused
	}
	return kindWritten
}

// lookUp checks that what a command names exists: the target of make, or the packages and
// tests of the go command.
func lookUp(ctx context.Context, text string) error {
	if target, is := strings.CutPrefix(text, "make "); is {
		_, err := recipe(ctx, target)
		return err
	}
	return goCommand(text)
}

// recipe returns the commands that make would run for a target, line by line.
func recipe(ctx context.Context, target string) ([]string, error) {
	// The versions do not matter, and make would call git many times for each of them.
	out, err := shell(ctx, "make --no-print-directory --dry-run VERSION=v COMMIT=c DATE=d "+target, 0, setting{root: true})
	return strings.Split(strings.TrimSpace(out), "\n"), err
}

// isPart checks whether make test or the nightly run does what a command does: the
// nightly script calls the targets by name, and has a function for each part.
func isPart(ctx context.Context, text string) error {
	target, is := strings.CutPrefix(text, "make ")
	if !is {
		return fmt.Errorf("%s: only targets of make are parts of others", text)
	}
	lines, err := recipe(ctx, target)
	all, err2 := recipe(ctx, "test")
	script, err3 := os.ReadFile(filepath.Join(suite.root, "hack", "nightly.sh"))
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	daily := "\n" + strings.Join(all, "\n") + "\n"
	if strings.Contains(daily, "\n"+strings.Join(lines, "\n")+"\n") {
		return nil
	}
	begins := `make --no-print-directory ` + regexp.QuoteMeta(target) + `( |;|\)|$)`
	if parts, is := strings.CutPrefix(target, "nightly"); is {
		begins = `^` + regexp.QuoteMeta(strings.TrimPrefix(parts, " PARTS=")) + `\(\) \{`
		if parts == "" {
			begins = `^all=`
		}
	}
	if !regexp.MustCompile(`(?m)` + begins).Match(script) {
		return fmt.Errorf("%s: neither make test nor hack/nightly.sh does it", text)
	}
	return nil
}

// permitted are the numbers in the table of docs/nightly.md, by kind.
func permitted(page string) map[kind]int {
	out := map[kind]int{}
	for _, found := range regexp.MustCompile(`(?m)^\| ([a-z ]+) \| (\d+) \| .+ \|$`).FindAllStringSubmatch(page, -1) {
		out[kind(found[1])], _ = strconv.Atoi(found[2]) // digits
	}
	return out
}

// tally counts the commands of each kind, each text once, and returns the faults of
// commands that are not run as written.
func tally(commands []command) (counts map[kind]int, wrong []string) {
	counts, tried := map[kind]int{}, map[string]bool{}
	for _, c := range commands {
		how := kindOf(c.text)
		if how == kindName && c.block {
			wrong = append(wrong, fmt.Sprintf("%v: it is in a block, so people run it: it is more than a name", c))
		}
		if how == kindNowhere {
			wrong = append(wrong, fmt.Sprintf("%v: nothing runs it: say it by what can be run here", c))
		}
		if !tried[c.text] {
			tried[c.text] = true
			counts[how]++
		}
	}
	return counts, wrong
}

// TestKinds compares how many commands are not run as they are written with what
// docs/nightly.md says of each kind: a new one needs a decision.
func TestKinds(t *testing.T) {
	page := expect.Get(os.ReadFile(filepath.Join(suite.root, "docs", "nightly.md")))(t)
	want := permitted(string(page))
	commands := allCommands(t)
	counts, wrong := tally(commands)
	expect.Same(t, "commands that are not run", []string(nil), wrong)
	for _, how := range []kind{kindLater, kindLess, kindPart, kindAnother, kindRefused, kindNowhere, kindName} {
		expect.That(t, counts[how] == want[how],
			"%d commands are tried %q, docs/nightly.md says %d", counts[how], how, want[how])
		delete(want, how)
	}
	expect.That(t, len(want) == 0, "docs/nightly.md has other kinds: %v", want)
	t.Logf("%d commands are run as they are written", counts[kindWritten])
	for planted, how := range map[string]kind{
		"go build ./cmd/localcluster": kindLater, "go test -run '^$' -bench X ./pkg/rest": kindLess, "make nightly PARTS=unit": kindPart,
		"kubectl apply -k manifests/admission/mutating-v1 --wait": kindRefused,
		"skopeo copy a b": kindNowhere, "kubectl-paddock __complete x": kindName, "kubectl get pods -n nowhere": kindWritten,
	} {
		more, _ := tally(append(slices.Clone(commands), command{text: planted}))
		expect.Same(t, fmt.Sprintf("commands tried %q with %q", how, planted), counts[how]+1, more[how])
	}
	for says, planted := range map[string]command{
		"it is more than a name": {text: "helm upgrade", block: true},
		"nothing runs it":        {text: "podman load -i image.tar"},
	} {
		_, wrong := tally([]command{planted})
		expect.That(t, len(wrong) == 1 && strings.Contains(wrong[0], says),
			"of %q it says %q", planted.text, wrong)
	}
}

// TestParts plants commands that are no part of a run.
func TestParts(t *testing.T) {
	for _, text := range []string{"make test", "make unit-release", "make lockorder", "make nightly", "make nightly PARTS=fuzz"} {
		expect.Holds(t, isPart(t.Context(), text))
	}
	for _, text := range []string{"make run", "make soak", "make everything", "make nightly PARTS=fuss", "make conform", "go vet ./..."} {
		expect.That(t, isPart(t.Context(), text) != nil, "%s is a part", text)
	}
}
