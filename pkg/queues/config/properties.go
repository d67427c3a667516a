package config

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// The names of the queue properties that mean something.
const (
	propApplicationSort = "application.sort.policy"
	propPrioritySort    = "application.sort.priority"
	propBackoff         = "application.unschedasks.backoff"
	propBackoffDelay    = "application.unschedasks.backoff.delay"
	propPriorityPolicy  = "priority.policy"
	propPriorityOffset  = "priority.offset"
	propPreemption      = "preemption.policy"
	propPreemptionDelay = "preemption.delay"
	propQuotaPreemption = "quota.preemption.delay"
)

// property reads the value of one property into the policies. The error says which value is
// used instead. The note says what a good value does not do.
type property func(value string, p *Policies) (note string, err error)

const noBackoff = "has no effect yet: applications with pods that cannot be scheduled are not put aside"

var known = map[string]property{
	propApplicationSort: readApplicationSort,
	propPrioritySort: func(value string, p *Policies) (string, error) {
		return "", oneOf(value, "enabled", "disabled", &p.PrioritySort)
	},
	propBackoff: func(value string, _ *Policies) (string, error) {
		if _, err := strconv.ParseUint(value, 10, 64); err != nil {
			return "", fmt.Errorf("%s is not a whole number from 0 on; 0 (never) is used", quote(value))
		}
		return noBackoff, nil
	},
	propBackoffDelay: func(value string, _ *Policies) (string, error) {
		return noBackoff, positiveDuration(value, new(30*time.Second))
	},
	propPriorityPolicy: func(value string, p *Policies) (string, error) {
		inverse := true
		err := oneOf(value, "default", "fence", &inverse)
		p.PriorityFence = !inverse
		return "", err
	},
	propPriorityOffset: func(value string, p *Policies) (string, error) {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return "", fmt.Errorf("%s is not a whole number from -2147483648 to 2147483647; 0 is used", quote(value))
		}
		p.PriorityOffset = int32(n)
		return "", nil
	},
	propPreemption: readPreemption,
	propPreemptionDelay: func(value string, p *Policies) (string, error) {
		return "", positiveDuration(value, &p.PreemptionDelay)
	},
	propQuotaPreemption: func(string, *Policies) (string, error) {
		return "has no effect: pods over a lowered max are not preempted", nil
	},
}

func readApplicationSort(value string, p *Policies) (string, error) {
	switch SortPolicy(value) {
	case SortFIFO, SortFair:
		p.ApplicationSort = SortPolicy(value)
	case "stateaware":
		return "stateaware is deprecated and means fifo; write fifo", nil
	default:
		return "", fmt.Errorf("%s is neither fifo nor fair; fifo is used", quote(value))
	}
	return "", nil
}

func readPreemption(value string, p *Policies) (string, error) {
	switch policy := PreemptionPolicy(strings.ToLower(value)); policy {
	case PreemptionDefault, PreemptionFence, PreemptionDisabled:
		p.Preemption = policy
		return "", nil
	}
	return "", fmt.Errorf("%s is none of default, fence, disabled; default is used", quote(value))
}

// oneOf sets *first to true for the first word and to false for the second, in any case. Any
// other value is an error, and *first keeps its default.
func oneOf(value, yes, no string, first *bool) error {
	switch strings.ToLower(value) {
	case yes:
		*first = true
	case no:
		*first = false
	default:
		return fmt.Errorf("%s is neither %s nor %s; %s is used", quote(value), yes, no, yes)
	}
	return nil
}

func positiveDuration(value string, d *time.Duration) error {
	read, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not a duration such as 30s or 5m; %v is used", quote(value), *d)
	case read <= 0:
		return fmt.Errorf("%s is not a positive duration; %v is used", quote(value), *d)
	}
	*d = read
	return nil
}

// ParsePolicies gives the meaning of properties. Bad values have their defaults, and are in
// the error.
func ParsePolicies(properties map[string]string) (p Policies, err error) {
	p = DefaultPolicies()
	for name, read := range known { // each writes a field of its own: order does not matter
		if value, ok := properties[name]; ok {
			_, wrong := read(value, &p)
			err = errors.Join(err, wrong)
		}
	}
	return p, err
}

// checkProperties warns about properties that are unknown, bad, or without effect.
func (r *report) checkProperties(properties []rawProperty) {
	for _, p := range properties {
		read, ok := known[p.key]
		if !ok {
			r.warnf(p.at, p.line, "is not a known property; it is kept and has no effect")
			continue
		}
		policies := DefaultPolicies()
		note, err := read(p.value, &policies)
		if err != nil {
			note = err.Error()
		}
		if note != "" {
			r.warnf(p.at, p.line, "%s", note)
		}
	}
}

// Inherited returns those properties of a parent that are passed on to its children.
func Inherited(parent map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, parent)
	maps.DeleteFunc(out, func(key, value string) bool { return !passedOn(key, value) })
	return out
}

// bytesOfEntry is about what an entry of a map of properties or types takes, or a bound of a limit.
const bytesOfEntry = 64

// inheritance checks how many properties q, with as many above it, and the queues below it
// will have.
func (r *report) inheritance(q *rawQueue, above int) {
	all := above + len(q.properties)
	if r.affords(q.place("properties"), q.line, all*bytesOfEntry) {
		for _, child := range q.queues {
			r.inheritance(child, all)
		}
	}
}

// inherit returns the properties of a queue: those of the parent that are
// passed on, overridden by its own.
func inherit(parent map[string]string, own []rawProperty) map[string]string {
	out := Inherited(parent)
	for _, p := range own {
		out[p.key] = p.value
	}
	return out
}

// passedOn tells whether configured children get the property of their parent.
// Priorities and the fence are about the place in the tree and stay where they are.
func passedOn(key, value string) bool {
	switch key {
	case propPriorityPolicy, propPriorityOffset:
		return false
	case propPreemption:
		return strings.EqualFold(value, string(PreemptionDisabled))
	}
	return true
}
