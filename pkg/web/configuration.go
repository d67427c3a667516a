package web

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// Configuration is the state of the configuration.
type Configuration struct {
	// Source is where the configuration in force was read, and Since when; empty while
	// none is in force.
	Source string
	Since  time.Time
	// Failure is the last configuration that could not be used; nil for none.
	Failure *Failure
}

// Failure is a configuration that could not be used.
type Failure struct {
	// At is when it was read, Source where.
	At     time.Time
	Source string
	// Err says why; its problems have lines where it is a [config.InvalidError].
	Err error
	// Corrected is when a valid one was read after it; zero before that.
	Corrected time.Time
}

// warningsOf returns the warnings that every page has.
func warningsOf(v *inventory.View, c Configuration) []warning {
	var out []warning
	if !v.Started {
		out = append(out, warning{Text: "The scheduler has not begun: it waits for a valid configuration, or to have seen all pods and nodes. No pod of a queue is scheduled yet."})
	}
	if c.Failure != nil && c.Failure.Corrected.IsZero() {
		text := "The configuration that was read last cannot be used; the one before stays in force."
		if c.Source == "" {
			text = "The configuration cannot be used, and there was none before it. No pod of a queue is scheduled until it is corrected."
		}
		out = append(out, warning{Text: text, Link: "What is wrong", Address: link("configuration")})
	}
	return out
}

// linesAtOnce is how many lines of a document are on a page.
const linesAtOnce = 500

// configurationContent is what is on the page of the configuration.
type configurationContent struct {
	// InForce is false while nothing was read, BuiltIn true where no document was found.
	InForce, BuiltIn bool
	Source, Checksum string
	Since            moment
	Queues           int
	Preemption       bool
	Warnings         []config.Problem
	Failure          *Failure
	Pager            pager
	Lines            []line
}

type line struct {
	Number int
	Text   string
}

func (p *Pages) configurationPage(r *request) (any, string) {
	c := p.options.Configuration()
	out := configurationContent{
		InForce: c.Source != "", Source: visible(c.Source), Since: at(c.Since),
		Failure: c.Failure, Queues: r.Queues.Len(),
	}
	if !out.InForce {
		return out, ""
	}
	spec := r.Spec
	out.Preemption, out.Checksum, out.BuiltIn = spec.PreemptionEnabled, spec.Checksum, spec.Document == ""
	out.Warnings = shown(spec.Warnings)
	all := strings.Split(strings.TrimSuffix(spec.Document, "\n"), "\n")
	lines, pager := cut(r, "page", "line", all, linesAtOnce)
	for i, text := range lines {
		out.Lines = append(out.Lines, line{pager.First + i, visible(strings.TrimSuffix(text, "\r"))})
	}
	out.Pager = pager
	return out, ""
}

// mostProblems is how many errors or warnings are listed.
const mostProblems = 200

// shown are problems as they can be shown.
func shown(problems []config.Problem) []config.Problem {
	var out []config.Problem
	for i, one := range problems {
		if i == mostProblems {
			return append(out, config.Problem{Text: "and " + strconv.Itoa(len(problems)-i) + " more; kubectl paddock config validate lists all"})
		}
		one.Path, one.Key, one.Text = visible(one.Path), visible(one.Key), visible(one.Text)
		out = append(out, one)
	}
	return out
}

// problemsOf are the problems with lines that an error has; none for another error.
func problemsOf(err error) []config.Problem {
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		return shown(invalid.Problems)
	}
	return nil
}
