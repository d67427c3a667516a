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

// command is one command of a page.
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

// begins tells whether a text begins with the name of a program. "kind" alone is a field
// or a label.
func begins(text string) bool {
	first, rest, _ := strings.Cut(text, " ")
	return slices.Contains(programs, first) && (first != "kind" || rest != "")
}

var (
	span    = regexp.MustCompile("`([^`]+)`")
	comment = regexp.MustCompile(`\s{2,}#.*$`)
)

// extract finds the commands of a page. The error names blocks with commands that
// are not marked sh.
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

// allCommands returns the commands of all pages.
func allCommands(t *testing.T) []command {
	t.Helper()
	var out []command
	for _, page := range pages(t) {
		text := expect.Get(os.ReadFile(filepath.Join(suite.root, page)))(t)
		found, err := extract(page, string(text))
		if err != nil {
			t.Error(err)
		}
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
	if _, err := extract("p.md", "```\nmake all\n```\n"); err == nil {
		t.Error("a command in a block without a mark is not noticed")
	}
}
