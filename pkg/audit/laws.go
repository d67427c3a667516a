package audit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/queues/store"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/victims/retrial"
)

// What is found about the execution of a decision, beside the laws of package
// retrial.
const (
	// LawNamed: a pod was let go whom no decision that was committed names.
	LawNamed = "named"
	// LawHold: a pod for which others had to go was placed elsewhere than on the
	// node it held.
	LawHold = "hold"
)

const (
	// settleTime is how long a pod that was let go may be unknown to the auditor: the
	// decision is committed before, and told a moment later.
	settleTime = 5 * time.Second
	// namedKept is how many victims are remembered. They go within minutes, or not.
	namedKept = 100_000
	// goingTime is how long after its decision a pod may be let go, where the API server
	// refuses again and again. For so long a step that was lost may have named it.
	goingTime = 10 * time.Minute
	// lostSaid is how long the check speaks of lost steps, as the alert does.
	lostSaid = time.Hour
)

// AllLaws are all that Laws counts.
func AllLaws() []string { return append(slices.Clone(retrial.Laws), LawNamed, LawHold) }

// Laws judges every executed decision again. Fill the fields, have Hear told of
// every step of a record, and LetGo of every pod that is let go.
type Laws struct {
	Clock  clock.Clock
	Logger klog.Logger
	// Count counts a violation of a law; nil for nobody.
	Count func(law string)
	// Lost is how many steps nobody heard of; nil for none.
	Lost func() int64

	mu      sync.Mutex // guards the rest
	judged  int64
	broken  int64
	last    string // the last violation, as a sentence
	named   map[types.UID]struct{}
	order   []types.UID // of named, a ring
	next    int
	unnamed []letGo   // not in named yet
	missing int64     // of Lost, when it was looked at last
	lostAt  time.Time // when that had grown; zero for never
}

// letGo is a pod that was let go.
type letGo struct {
	pod, asker store.Ref
	at         time.Time
}

// Hear takes a step of the record.
func (l *Laws) Hear(s *store.Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch s.Kind {
	case store.StepCommitted:
		for _, v := range s.Going {
			l.name(v.UID)
		}
		l.retry(s)
	case store.StepEnded:
		elsewhere := s.Node != "" && s.Node != s.Hold.Node && (s.Ended == reservations.Bound || s.Ended == reservations.Superseded)
		if h := &s.Hold; elsewhere && h.Binding() && !s.Standby {
			l.found(LawHold, s.Ref, fmt.Sprintf("others had to go for it from node %s, which it held, and it was placed on node %s", h.Node, s.Node))
		}
	default:
	}
	l.settle()
}

// retry judges what was committed.
func (l *Laws) retry(s *store.Step) {
	if s.Case == nil {
		return
	}
	l.judged++
	for _, v := range s.Case.Judge() {
		l.found(v.Law, s.Ref, fmt.Sprintf("of decision %s for node %s: %s", s.Hold.Decision, s.Hold.Node, v.Text))
	}
}

// name remembers a victim that may go.
func (l *Laws) name(pod types.UID) {
	if l.named == nil {
		l.named = map[types.UID]struct{}{}
	}
	if _, known := l.named[pod]; known {
		return
	}
	l.named[pod] = struct{}{}
	if len(l.order) < namedKept {
		l.order = append(l.order, pod)
		return
	}
	delete(l.named, l.order[l.next])
	l.order[l.next] = pod
	l.next = (l.next + 1) % namedKept
}

// LetGo tells that a pod is deleted, or turned away, for an asker. It may be called
// before the decision is heard of.
func (l *Laws) LetGo(asker, pod store.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unnamed = append(l.unnamed, letGo{pod: pod, asker: asker, at: l.Clock.Now()})
	l.settle()
}

// settle looks whether those who were let go were named.
func (l *Laws) settle() {
	now := l.Clock.Now()
	if l.Lost != nil {
		if missing := l.Lost(); missing > l.missing {
			l.missing, l.lostAt = missing, now
		}
	}
	var waiting []letGo
	for _, g := range l.unnamed {
		_, named := l.named[g.pod.UID]
		switch {
		case named:
		case now.Sub(g.at) < settleTime:
			waiting = append(waiting, g)
		case !l.lostAt.IsZero() && g.at.Sub(l.lostAt) <= goingTime: // its decision may be among those
		default:
			l.found(LawNamed, g.asker, fmt.Sprintf("pod %s/%s was let go for it, and no decision that was carried out names that pod", g.pod.Namespace, g.pod.Name))
		}
	}
	l.unnamed = waiting
}

// found notes a violation.
func (l *Laws) found(law string, asker store.Ref, text string) {
	l.broken++
	l.last = fmt.Sprintf("at %s, for pod %s/%s, law %s: %s", l.Clock.Now().UTC().Format(time.RFC3339), asker.Namespace, asker.Name, law, text)
	l.Logger.Error(nil, "A decision was carried out that breaks a law; this is a mistake of the scheduler, please report it with this line",
		"pod", klog.KRef(asker.Namespace, asker.Name), "law", law, "what", text)
	if l.Count != nil {
		l.Count(law)
	}
}

// Run looks from time to time after those who were let go, until the context ends.
func (l *Laws) Run(ctx context.Context) {
	for {
		timer := l.Clock.NewTimer(settleTime)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
			l.mu.Lock()
			l.settle()
			l.mu.Unlock()
		}
	}
}

// Check says what was found since the start, or that something was lost in the last
// hour, and what to do; nil for neither.
func (l *Laws) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	switch {
	case l.broken > 0:
		return fmt.Errorf("%d violations in %d decisions that were carried out since the start; please report it, a restart does not mend it; the last one %s", l.broken, l.judged, l.last)
	case !l.lostAt.IsZero() && l.Clock.Since(l.lostAt) < lostSaid:
		return fmt.Errorf("%d steps of decisions were not recorded since the start, the last ones at %s, because there were too many at a time; "+
			"their decisions were judged before pods went, but not again; nothing else is wrong, no restart is needed, and this is said for an hour after the last ones",
			l.missing, l.lostAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// Judged is how many decisions were judged again.
func (l *Laws) Judged() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.judged
}
