package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// TestCommands runs all commands, page by page, each text once; some come last.
func TestCommands(t *testing.T) {
	tried := map[string]bool{}
	outputs := map[string][]edit{}
	by := time.Now().Add(patience)
	run := func(c command) {
		t.Run(c.page+":"+fmt.Sprint(c.line), func(t *testing.T) {
			t.Log(c.text)
			output := expect.Get(retried(t.Context(), c, by))(t)
			if c.from != 0 && *rewrite {
				outputs[c.page] = append(outputs[c.page], edit{c.from, c.to, shorten(steady(output), c.output)})
			}
		})
	}
	for _, c := range inTurn(allCommands(t)) {
		if tried[c.text] && c.from == 0 {
			continue
		}
		tried[c.text] = true
		run(c)
	}
	for page, edits := range outputs {
		expect.Holds(t, rewritePage(page, edits))
	}
}

// inTurn are the commands in the order in which they are run: as the pages have them, then those that
// remove what the others need, then the long ones. The long ones last longer than the stage: its events
// expire after an hour, and so does the grace period of its victims.
func inTurn(commands []command) []command {
	out := slices.Clone(commands)
	turn := func(c command) int {
		r, _ := ruleOf(c.text)
		switch {
		case r.long:
			return 2
		case r.last:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b command) int { return turn(a) - turn(b) })
	return out
}

// retried tries a command until it prints what the page shows. Effects of the stage's setup may not be
// over: the cluster has until by to come to rest, and later a pod may still be tried at the moment of
// the query. A command that changes something is tried once.
func retried(ctx context.Context, c command, by time.Time) (string, error) {
	r, _ := ruleOf(c.text)
	for tries := 1; ; tries++ {
		output, err := try(ctx, c.text)
		if err != nil || c.from == 0 || *rewrite {
			return output, err
		}
		if err = sameOutput(c.output, output); err == nil {
			return output, nil
		}
		if (tries >= 5 && time.Now().After(by)) || r.before+r.after != "" {
			return "", fmt.Errorf("%v: %w", c, err)
		}
		time.Sleep(time.Second)
	}
}

// try carries out the rule of a command, and returns the output.
func try(ctx context.Context, text string) (string, error) {
	r, found := ruleOf(text)
	if found && r.why == "" {
		return "", fmt.Errorf("the rule %q has no reason", r.match)
	}
	if !found && needsRule(text) {
		return "", fmt.Errorf("%s: this test does not run it as it is: say in rules_test.go what is done instead", text)
	}
	switch {
	case r.kind == kindName:
		return "", nil
	case r.kind == kindLater:
		return "", lookUp(ctx, text)
	case r.kind == kindPart:
		return "", isPart(ctx, text)
	case r.elsewhere != "":
		return "", r.isElsewhere(ctx, text)
	}
	if r.instead != "" {
		text = strings.ReplaceAll(r.instead, "$0", text)
	}
	return r.run(ctx, text)
}

// isElsewhere checks that the test that covers a command exists, and the target that the command names.
func (r *rule) isElsewhere(ctx context.Context, text string) error {
	if strings.HasPrefix(text, "make ") {
		if err := lookUp(ctx, text); err != nil {
			return err
		}
	}
	dir, test, _ := strings.Cut(r.elsewhere, " ")
	return testExists(dir, test)
}

// run runs a command with the commands of its rule around it.
func (r *rule) run(ctx context.Context, text string) (string, error) {
	in := setting{root: r.root, long: r.long}
	if r.clone {
		in.dir = filepath.Join(suite.work, ".clone")
		if err := makeClone(ctx, in.dir); err != nil {
			return "", err
		}
		defer os.RemoveAll(in.dir)
	}
	place := func(text string) string { return text }
	switch {
	case r.node:
		place = strings.NewReplacer("/etc/kubernetes", "etc/kubernetes").Replace
	case r.kubelet:
		server, port := startKubelet()
		defer server.Close()
		place = strings.NewReplacer("KUBELET", port, "service/yunikorn-service 9080", "service/yunikorn-service :9080").Replace
	}
	if r.before != "" {
		if _, err := shell(ctx, place(r.before), 0, in); err != nil {
			return "", err
		}
	}
	says, exit := r.says, r.exit
	if r.refused != "" {
		text, says, exit = "{ "+text+"\n} 2>&1", r.refused, 1
	}
	if r.meanwhile != "" {
		text = fmt.Sprintf(goingOn, text, says, r.meanwhile)
	}
	output, err := shell(ctx, place(r.environment+text), exit, in)
	if err == nil && !strings.Contains(output, says) {
		return "", fmt.Errorf("%s: it does not say %q: %s", text, says, output)
	}
	after := r.after
	if r.clone {
		after = "git diff --exit-code"
	}
	if err == nil && after != "" {
		_, err = shell(ctx, place(after), 0, in)
	}
	return output, err
}

// goingOn runs a command until it has printed a text and another command has ended.
const goingOn = `%[1]s > said &
trap 'kill $!; wait $! || true; rm said' EXIT
until grep -qF '%[2]s' said; do kill -0 $!; sleep 0.2; done
cat said
%[3]s`

func makeClone(ctx context.Context, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	text, err := exec.CommandContext(ctx, "git", "clone", "--quiet", suite.root, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("git clone: %w\n%s", err, text)
	}
	return nil
}

func addresses() *strings.Replacer {
	return strings.NewReplacer("http://127.0.0.1:9080", suite.rest, "https://127.0.0.1:9080", suite.secure, "https://SCHEDULER:9080", suite.secure)
}

// setting is where a command runs, and for how long it may run.
type setting struct {
	root, long bool
	dir        string // "" is the directory of the pages
}

// limit is how long a command may take, including what its rule waits for before it.
func (s setting) limit() time.Duration {
	switch {
	case s.long:
		return time.Hour
	case s.root || s.dir != "":
		return 15 * time.Minute // it compiles, perhaps Kubernetes too
	}
	return 10 * time.Minute // seconds, on an idle machine
}

// shell runs a command and expects the exit code exit.
func shell(ctx context.Context, text string, exit int, in setting) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, in.limit())
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", addresses().Replace(text))
	c.Dir, c.Env = suite.work, suite.env
	if in.root {
		c.Dir = suite.root
	}
	if in.dir != "" {
		c.Dir = in.dir
	}
	var out, failed bytes.Buffer
	c.Stdout, c.Stderr = &out, &failed
	c.WaitDelay = time.Minute // for processes that the command has started and left
	err := c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return "", fmt.Errorf("%s: %w: %s%s", text, err, &out, &failed)
	}
	if got := c.ProcessState.ExitCode(); got != exit {
		return "", fmt.Errorf("%s: exit code %d, want %d: %s%s", text, got, exit, &out, &failed)
	}
	return out.String(), nil
}

var (
	selected = regexp.MustCompile(`-(run|bench)[ =]('[^']*'|\S+)`)
	packaged = regexp.MustCompile(`\./[a-z./]+`)
)

// goCommand checks that the packages of a go command exist, and the tests.
func goCommand(text string) error {
	var dirs []string
	for _, dir := range packaged.FindAllString(text, -1) {
		clean := strings.TrimSuffix(dir, "/...")
		info, err := os.Stat(filepath.Join(suite.root, clean))
		if err != nil || !info.IsDir() {
			return fmt.Errorf("%s: there is no package %s", text, dir)
		}
		dirs = append(dirs, clean)
	}
	if len(dirs) == 0 {
		return fmt.Errorf("%s: it names no package", text)
	}
	if strings.HasPrefix(text, "go run ") {
		return nil // the rest are arguments of our program
	}
	for _, found := range selected.FindAllStringSubmatch(text, -1) {
		pattern := strings.Trim(found[2], "'")
		if pattern == "^$" || pattern == "." {
			continue
		}
		prefix := map[string]string{"run": "", "bench": "Benchmark.*"}[found[1]]
		for alternative := range strings.SplitSeq(pattern, "|") {
			if err := testsExist(dirs, prefix+strings.Trim(alternative, "^$")); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
	}
	return nil
}

// testsExist looks in the directories for a test or benchmark with a name that matches
// the argument of -run.
func testsExist(dirs []string, name string) error {
	return declared(dirs, name, `(?m)^func (Test|Benchmark)?\w*`+name)
}

// testExists checks that a test of exactly this name exists.
func testExists(dir, name string) error {
	return declared([]string{dir}, name, `(?m)^func `+regexp.QuoteMeta(name)+`\(t \*testing\.T\)`)
}

// declared searches the tests of the directories for a pattern.
func declared(dirs []string, name, pattern string) error {
	wanted := regexp.MustCompile(pattern)
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(suite.root, dir, "*_test.go"))
		if err != nil {
			return err
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if wanted.Match(source) {
				return nil
			}
		}
	}
	return fmt.Errorf("no test %s in %s", name, strings.Join(dirs, ", "))
}

// TestRules checks that every rule is used.
func TestRules(t *testing.T) {
	commands := allCommands(t)
	for line := range strings.SplitSeq(removeKubectl, "\n") {
		expect.That(t, slices.ContainsFunc(commands, func(c command) bool { return c.text == line }),
			"no page has %q", line)
	}
	check := func(all []rule, runs func(rule) bool) {
		for _, r := range all {
			expect.That(t, r.why != "", "rule %q has no reason", r.match)
			expect.That(t, runs(r), "rule %q does not have the command run", r.match)
			expect.That(t, r.meanwhile == "" || r.says != "",
				"rule %q does not say when the command has got going", r.match)
			isFor := func(c command) bool {
				used, _ := ruleAmong(all, c.text)
				return used.match == r.match
			}
			expect.That(t, slices.ContainsFunc(commands, isFor), "rule %q is for no command: remove it", r.match)
		}
	}
	check(rules, func(r rule) bool { return r.instead == "" && r.kind != kindNowhere })
	check(inFull, func(r rule) bool { return r.kind == "" && (r.instead == "" || r.less) })
}

// TestWrongCommandsAreFound plants wrong commands.
func TestWrongCommandsAreFound(t *testing.T) {
	for _, text := range []string{
		"kubectl get podz",
		"kubectl apply -k manifests/overlays/medium",
		"kubectl paddock explain pod over-max -n nowhere",
		"kubectl paddock qeues",
		"helm install paddock manifests/graph -n yunikorn",
		"make everything",
		"go test ./pkg/stores",
		"go test ./pkg/reasons -run TestOfNothing",
		"go run ./test/conformity",
		"kubectl create rolebinding spark --clusterrole",
		"kubectl -n yunikorn port-forward service/yunikorn-service 9081",
		"kubectl -n yunikorn port-forward service/yunikorn-service 10259",
		"rm queues.yaml",
		"ctr images list",
		"cat /etc/kubernetes/kube-scheduler.upstream.yaml",
	} {
		_, err := try(t.Context(), text)
		expect.That(t, err != nil, "%q goes unnoticed", text)
	}
	for text, r := range map[string]rule{
		"make rum": {elsewhere: "test/integration TestMakeRun"}, "make run": {elsewhere: "test/integration TestMakeRum"},
	} {
		expect.That(t, r.isElsewhere(t.Context(), text) != nil, "%q is found, by %s", text, r.elsewhere)
	}
	expect.Fails(t, testsExist([]string{"test/integration"}, "TestOfNothing"), "no test TestOfNothing")
	for _, name := range []string{"TestSimulat", "Simulation", "TestSimulation.*"} { // it is called TestSimulation
		expect.Fails(t, testExists("test/simulation", name), "no test "+name)
	}
}
