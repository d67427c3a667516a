package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// programs are the names that begin a command.
var programs = []string{
	"kubectl", "kubectl-paddock", "helm", "make", "go", "curl", "skopeo", "git", "docker", "podman", "crane", "promtool",
	"bin/scheduler", "bin/localcluster", "bin/kubectl-paddock",
	"mv", "cp", "rm", "mkdir", "cat", "base64", "gunzip", "ctr", "crictl", "kind", "flux", "kubeadm", "kubelet", "systemctl",
}

// unlike are the programs that are never run as written: they are not installed, need
// something that is missing, or change files.
var unlike = []string{
	"make", "go", "skopeo", "docker", "podman", "crane", "mv", "cp", "rm", "base64", "gunzip",
	"ctr", "crictl", "kind", "flux", "kubeadm", "kubelet", "systemctl",
}

// needsRule tells whether a command may not be run without a rule.
func needsRule(text string) bool {
	first, _, _ := strings.Cut(text, " ")
	return slices.Contains(unlike, first) || strings.Contains(text, "/etc/")
}

type command struct {
	page string // file, from the root
	line int    // where it ends, from 1
	text string
	// block is true for a line of a block, false for a span in a sentence.
	block bool
	// from and to are the lines of the output that the page shows, without the
	// fences; 0 if it shows none.
	from, to int
	output   string
}

func (c command) String() string { return fmt.Sprintf("%s:%d: %s", c.page, c.line, c.text) }

// begins tells whether a text begins with the name of a program. "kind" alone is a field or a label.
func begins(text string) bool {
	first, rest, _ := strings.Cut(text, " ")
	return slices.Contains(programs, first) && (first != "kind" || rest != "")
}

var (
	span    = regexp.MustCompile("`([^`]+)`")
	comment = regexp.MustCompile(`\s{2,}#.*$`)
)

// extract finds the commands of a page. The error names blocks with commands that are not marked sh.
func extract(page, text string) ([]command, error) {
	var out []command
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		mark, fenced := strings.CutPrefix(lines[i], "```")
		if !fenced {
			for _, found := range span.FindAllStringSubmatch(lines[i], -1) {
				if begins(found[1]) {
					out = append(out, command{page: page, line: i + 1, text: found[1]})
				}
			}
			continue
		}
		end := i + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "```") {
			end++
		}
		body := lines[i+1 : min(end, len(lines))]
		switch mark {
		case "sh":
			out = append(out, commandsOf(page, i+2, body)...)
		case "text":
			if n := len(out); n > 0 && out[n-1].block && strings.TrimSpace(strings.Join(lines[out[n-1].line:i], "")) == "```" {
				out[n-1].from, out[n-1].to, out[n-1].output = i+1, end, strings.Join(body, "\n")
			}
		default:
			if k := slices.IndexFunc(body, begins); k >= 0 {
				return nil, fmt.Errorf("%s:%d: a command in a block that is not marked sh: %s", page, i+2+k, body[k])
			}
		}
		i = end
	}
	return out, nil
}

// commandsOf returns the commands of a block; a backslash at the end of a line continues
// the command, and so does a here-document after <<EOF.
func commandsOf(page string, first int, body []string) []command {
	var out []command
	for i := 0; i < len(body); i++ {
		text := strings.TrimRight(comment.ReplaceAllString(body[i], ""), " ")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		for strings.HasSuffix(text, `\`) && i+1 < len(body) {
			i++
			text = strings.TrimSuffix(text, `\`) + " " + strings.TrimSpace(body[i])
		}
		if strings.Contains(text, "<<EOF") {
			for i+1 < len(body) {
				i++
				text += "\n" + body[i]
				if body[i] == "EOF" {
					break
				}
			}
		}
		out = append(out, command{page: page, line: first + i, text: text, block: true})
	}
	return out
}

// pages are README.md and docs/*.md, in reading order.
func pages(t *testing.T) []string {
	t.Helper()
	out := expect.Get(filepath.Glob(filepath.Join(suite.root, "docs", "*.md")))(t)
	for i := range out {
		out[i] = filepath.Join("docs", filepath.Base(out[i]))
	}
	return append([]string{"README.md"}, out...)
}

func allCommands(t *testing.T) []command {
	t.Helper()
	var out []command
	for _, page := range pages(t) {
		text := expect.Get(os.ReadFile(filepath.Join(suite.root, page)))(t)
		found, err := extract(page, string(text))
		expect.Holds(t, err)
		out = append(out, found...)
	}
	return out
}

func TestExtract(t *testing.T) {
	const text = "Say `kubectl get pods` or `queues.yaml`, of a `kind`.\n\n" +
		"```sh\nkubectl get nodes   # all of them\n# nothing\nkubectl get \\\n  pods\n```\n\n```text\nNAME\nn1\n```\n\n" +
		"```\nNAME\n```\n\n```sh\nkubectl apply -f - <<EOF\nkind: A\nEOF\n```\n"
	got := expect.Get(extract("p.md", text))(t)
	want := []command{
		{page: "p.md", line: 1, text: "kubectl get pods"},
		{page: "p.md", line: 4, text: "kubectl get nodes", block: true},
		{page: "p.md", line: 7, text: "kubectl get  pods", block: true, from: 10, to: 12, output: "NAME\nn1"},
		{page: "p.md", line: 22, text: "kubectl apply -f - <<EOF\nkind: A\nEOF", block: true},
	}
	expect.Same(t, "", want, got, cmp.AllowUnexported(command{}))
	expect.Refused(extract("p.md", "```\nmake all\n```\n"))(t, "not marked sh: make all")
}

// changing are the parts of an output that differ from run to run, and their replacements on a page.
var changing = []struct {
	part  *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "2026-01-02T03:04:05Z"},
	{regexp.MustCompile(`this one in \d+[hms0-9.]*`), "this one in 59m30s"},
	{regexp.MustCompile(`Let through at the moment: \d+ of at most \d+`), "Let through at the moment: 0 of at most 4"},
	{regexp.MustCompile(`Tried without success: \d+`), "Tried without success: 3"},
	{regexp.MustCompile(`(?m)(\S)[ ]+$`), "$1"},
	{regexp.MustCompile(`(?m)(  +)(\d+h)?(\d+m)?\d+s(  +|$)`), "${1}40s$4"},
	{regexp.MustCompile(`\bx\d+ over \S+`), "x2 over 40s"},
}

// steady returns an output without the parts that differ from run to run.
func steady(text string) string {
	for _, c := range changing {
		text = c.part.ReplaceAllString(text, c.shown)
	}
	return strings.TrimRight(text, "\n")
}

// shorten cuts an output where the page cuts it, with a last line of dots.
func shorten(output, page string) string {
	shown := strings.Split(page, "\n")
	if shown[len(shown)-1] != "..." {
		return output
	}
	lines := strings.Split(output, "\n")
	if len(lines) < len(shown) {
		return output
	}
	return strings.Join(append(slices.Clone(lines[:len(shown)-1]), "..."), "\n")
}

func sameOutput(page, real string) error {
	if diff := cmp.Diff(shorten(steady(real), page), page); diff != "" {
		return fmt.Errorf("the page shows another output than there is (-); write it anew with -args -rewrite\n%s", diff)
	}
	return nil
}

// edit replaces the lines after from up to to, counted from 1.
type edit struct {
	from, to int
	text     string
}

// rewritePage writes outputs into a page, the last one first.
func rewritePage(page string, edits []edit) error {
	path := filepath.Join(suite.root, page)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		lines = slices.Replace(lines, e.from, e.to, strings.Split(e.text, "\n")...)
	}
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
}

func TestOutputs(t *testing.T) {
	const real = "Pod a/b waits since 2026-11-22T06:41:03Z\nReason: A.\nMore.\n"
	for _, c := range []struct {
		page string
		same bool
	}{
		{"Pod a/b waits since 2026-01-02T03:04:05Z\nReason: A.\nMore.", true},
		{"Pod a/b waits since 2026-01-02T03:04:05Z\n...", true},
		{"Pod a/b waits since 2026-01-02T03:04:05Z\nReason: B.\n...", false},
		{"Pod a/b waits since 2026-01-02T03:04:05Z\nReason: A.", false},
	} {
		err := sameOutput(c.page, real)
		expect.That(t, (err == nil) == c.same, "%q: %v", c.page, err)
	}
}
