package simulation_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// calm makes everything go well from now on.
func (s *simulation) calm() {
	s.setTrouble(0)
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	s.onTime()
	s.neighbour.keepQuiet(true)
	for _, in := range s.instances {
		in.isolated, in.crashIn = false, 0
	}
	if s.document.spec == nil {
		s.configure(s.lastValid)
	}
}

const (
	// restAfter is how long nothing has to happen until it counts as rest: longer than
	// whatever a process waits for, but for the time-out of holds.
	restAfter = 25 * time.Second
	// restWithin is how long it may take. A PodGroup that had a clear node and did not
	// start has no plan made for it for up to ten minutes, and may start then.
	restWithin = time.Hour
	// sweepAfter is how long upstream's queue lets a pod wait that nobody brings back. A rest
	// that comes later says little of who would have been.
	sweepAfter = 5 * time.Minute
)

// settle lets all processes work until nothing happens any more, and no pod is stranded.
// It is false where there is no rest but nothing happens either than what is said of pods
// that wait, and who holds a node for a while, which may go on for ever where there are
// PodGroups: see onlyTold.
func (s *simulation) settle() (rested bool, err error) {
	began, last, seen := time.Now(), time.Now(), -1
	for time.Since(last) < restAfter || s.held() && (s.settings.groups || time.Since(last) < 2*reservationTimeout*time.Second) || s.atPermit() {
		if time.Since(began) > restWithin {
			if s.settings.groups && time.Since(last) >= restAfter {
				return false, nil
			}
			return false, fmt.Errorf("things do not come to rest within %v", restWithin)
		}
		s.sayAgain()
		s.breathe(time.Second)
		if err := s.wrong(); err != nil {
			return false, err
		}
		s.api.locked(func() {
			if s.api.writes != seen || !s.connected() || s.leaving() || s.stranded() {
				last, seen = time.Now(), s.api.writes
			}
		})
	}
	return true, nil
}

// connected tells whether all watchers get all events: after failures it takes a minute
// until some try again. The caller holds the lock.
func (s *simulation) connected() bool {
	open := map[*instance]int{}
	for _, st := range s.api.streams {
		open[st.of]++
	}
	want := len(s.api.kinds) + 1 // there are two of the configuration
	if s.settings.groups {
		want += groupWatches - 1
	}
	return !slices.ContainsFunc(s.instances, func(in *instance) bool { return open[in] < want })
}

// leaving tells whether a pod is about to leave its node, for which some get more time
// than what counts as rest: others wait for the room. The caller holds the lock.
func (s *simulation) leaving() bool {
	return slices.ContainsFunc(s.api.allPods(), func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil && p.Spec.NodeName != ""
	})
}

// held tells whether some pod holds a node for a time that ends by itself.
func (s *simulation) held() bool {
	for _, in := range s.instances {
		for _, h := range in.store().Holds().All() {
			if !h.Required || !h.Patient {
				return true
			}
		}
	}
	return false
}

// rest lets everything settle, and compares what every process believes with what is.
func (s *simulation) rest() error {
	s.calm()
	began := time.Now()
	rested, err := s.settle()
	if err != nil {
		return err
	}
	if time.Since(began) > sweepAfter {
		s.count(swept)
	}
	if err := s.check(); err != nil {
		return err
	}
	s.count(rests)
	found := s.complaints()
	if !rested { // who takes turns may not have had one
		s.count(restless)
		found = slices.DeleteFunc(found, func(c complaint) bool { return strings.HasPrefix(c.what, "forgotten ") })
	}
	wrong, err := s.lasting(found)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range wrong {
		errs = append(errs, c.err)
	}
	return errors.Join(errs...)
}

// insist is how often, a second each, a history with PodGroups is asked again.
const insist = 60

// lasting leaves out what is not wrong most of the time: among PodGroups one moment may
// be between two in which they take room and leave it again, or hold a node. So a lasting
// complaint is older than anybody's back-off, and than it takes the process to see that
// somebody is nominated who holds nothing. What is firm is wrong in any moment.
func (s *simulation) lasting(wrong []complaint) ([]complaint, error) {
	if !s.settings.groups || !slices.ContainsFunc(wrong, func(c complaint) bool { return !c.firm }) {
		return wrong, nil
	}
	seen := map[string]int{}
	for range insist {
		s.breathe(time.Second)
		if err := s.wrong(); err != nil {
			return nil, err
		}
		for _, c := range s.complaints() {
			seen[c.what]++
		}
	}
	return stayed(wrong, seen), nil
}

// stayed are the complaints that are firm, or were made most of the times they were asked for.
func stayed(wrong []complaint, seen map[string]int) []complaint {
	return slices.DeleteFunc(wrong, func(c complaint) bool { return !c.firm && seen[c.what] < insist*3/4 })
}

// TestComplaintsThatStay has one of either kind that was made too seldom, and one that
// was made often enough.
func TestComplaintsThatStay(t *testing.T) {
	wrong := []complaint{{what: "books", firm: true}, {what: "a moment"}, {what: "most of the time"}}
	var left []string
	for _, c := range stayed(wrong, map[string]int{"a moment": insist*3/4 - 1, "most of the time": insist * 3 / 4}) {
		left = append(left, c.what)
	}
	if want := []string{"books", "most of the time"}; !slices.Equal(left, want) {
		t.Errorf("there stay %q, want %q", left, want)
	}
}

// complaint is something that is wrong at rest; what is the same as long as it is.
type complaint struct {
	what string
	err  error
	firm bool // in no moment it may be so
}

// complaints are all that is wrong at rest.
func (s *simulation) complaints() []complaint {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	var all []complaint
	for _, in := range s.instances {
		if err := in.recount(); err != nil {
			all = append(all, complaint{what: "books of " + in.name, err: fmt.Errorf("%s: %w", in.name, err), firm: true})
		}
	}
	leader := s.leader()
	if leader == nil {
		return append(all, complaint{what: "leader", err: errors.New("nobody leads"), firm: true})
	}
	all = append(all, s.claims(leader)...)
	all = append(all, s.nominations(leader)...)
	all = append(all, s.overDemand()...)
	all = append(all, s.taints(leader)...)
	for _, pod := range s.api.allPods() {
		if err := s.unasked(leader, pod); err != nil {
			err = fmt.Errorf("%s: nobody asks for pod %s (%v): %w", leader.name, pod.Name, leader.store().Explain(pod.UID), err)
			all = append(all, complaint{what: "unasked " + pod.Name, err: err})
		}
		if err := s.forgotten(leader, pod); err != nil {
			ago := "never"
			if at, tried := leader.tried[pod.UID]; tried {
				ago = fmt.Sprint(time.Since(at).Round(time.Second), " ago")
			}
			err = fmt.Errorf("%s: pod %s is forgotten (%v): %w; tried last: %s", leader.name, pod.Name, leader.store().Explain(pod.UID), err, ago)
			all = append(all, complaint{what: "forgotten " + pod.Name, err: err})
		}
	}
	return all
}

// leader is the process that schedules; nil for none. The caller holds the lock.
func (s *simulation) leader() *instance {
	for _, in := range s.instances {
		if !s.elects || in.leads() {
			return in
		}
	}
	return nil
}

// clear deletes all pods: nothing may be left of them.
func (s *simulation) clear() error {
	if err := s.rest(); err != nil {
		return err
	}
	s.api.locked(func() {
		for _, pod := range s.api.allPods() {
			s.api.drop(s.api.pods, pod)
		}
	})
	if _, err := s.settle(); err != nil {
		return err
	}
	for _, in := range s.instances {
		root := in.store().Snapshot().Root()
		if in.store().Holds().Held() || !root.Allocated.IsZero() || !root.Admitted.IsZero() || !root.Pending.IsZero() || !root.Arriving.IsZero() || !root.Leaving.IsZero() {
			return fmt.Errorf("%s: root has %+v, nodes are held: %v", in.name, root.Usage, in.store().Holds().Held())
		}
	}
	return s.check()
}
