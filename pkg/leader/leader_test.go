package leader

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// lease is the object in the API server that all locks write to.
type lease struct {
	mu     sync.Mutex
	record *resourcelock.LeaderElectionRecord
}

// fakeLock is one replica's access to the lease.
type fakeLock struct {
	lease    *lease
	identity string

	mu       sync.Mutex
	fail     error         // every call fails with it
	delay    time.Duration // every write arrives at once, but answers late
	observed func()        // called at the start of each write
}

func (l *fakeLock) set(fail error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = fail
}

func (l *fakeLock) state() (delay time.Duration, observed func(), fail error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delay, l.observed, l.fail
}

func (l *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if _, _, fail := l.state(); fail != nil {
		return nil, nil, fail
	}
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if l.lease.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "paddock-scheduler")
	}
	record := *l.lease.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *fakeLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record)
}

func (l *fakeLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record)
}

func (l *fakeLock) write(record resourcelock.LeaderElectionRecord) error {
	delay, observed, fail := l.state()
	if observed != nil {
		observed()
	}
	if fail != nil {
		return fail
	}
	l.lease.mu.Lock()
	l.lease.record = &record
	l.lease.mu.Unlock()
	time.Sleep(delay) // inside a synctest bubble
	return nil
}

func (l *fakeLock) RecordEvent(string) {}
func (l *fakeLock) Identity() string   { return l.identity }
func (l *fakeLock) Describe() string   { return "fake" }

// named returns a record in the given name.
func named(identity string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{
		HolderIdentity:       identity,
		LeaseDurationSeconds: int(leaseDuration / time.Second),
	}
}

func want(t *testing.T, gate *Gate, leading bool, when string) {
	t.Helper()
	expect.Same(t, when+": leading", leading, gate.Leading())
}

// acquired returns a gate that has just been opened by creating the lease.
func acquired(t *testing.T) (*Gate, *fakeLock, resourcelock.Interface) {
	t.Helper()
	gate := NewGate()
	inner := &fakeLock{lease: &lease{}, identity: "a"}
	lock := Watch(inner, gate, renewDeadline)
	want(t, gate, false, "before")
	expect.OK(t, lock.Create(t.Context(), named("a")))
	want(t, gate, true, "after creating the lease")
	return gate, inner, lock
}

func TestAlways(t *testing.T) {
	gate := Always()
	want(t, gate, true, "always")
	gate.close()
	gate.extend(gate.now().add(time.Hour))
	want(t, gate, true, "always, whatever happens")
	expect.OK(t, gate.Wait(t.Context()))
}

// The gate closes by itself when renewals stop, on the very nanosecond.
func TestExpiresWithoutRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, _, lock := acquired(t)
		time.Sleep(renewDeadline - time.Nanosecond)
		want(t, gate, true, "just before the end")
		expect.OK(t, lock.Update(t.Context(), named("a")))
		time.Sleep(renewDeadline - time.Nanosecond)
		want(t, gate, true, "just before the end, renewed")
		time.Sleep(time.Nanosecond)
		want(t, gate, false, "at the end")
		expect.OK(t, lock.Update(t.Context(), named("a")))
		want(t, gate, true, "renewed after the end")
	})
}

// A lease shorter than the validity passed to Watch is not stretched.
func TestExpiresWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, _, lock := acquired(t)
		time.Sleep(renewDeadline)
		short := named("a")
		short.LeaseDurationSeconds = 3
		expect.OK(t, lock.Update(t.Context(), short))
		time.Sleep(3*time.Second - time.Nanosecond)
		want(t, gate, true, "before the end of the lease")
		time.Sleep(time.Nanosecond)
		want(t, gate, false, "at the end of the lease")
	})
}

// Validity counts from when the write was sent, not from when it was answered.
func TestValidityCountsFromSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, inner, lock := acquired(t)
		inner.delay = 4 * time.Second
		expect.OK(t, lock.Update(t.Context(), named("a")))
		time.Sleep(renewDeadline - inner.delay - time.Nanosecond)
		want(t, gate, true, "before the end")
		time.Sleep(time.Nanosecond)
		want(t, gate, false, "at the end")

		inner.delay = renewDeadline
		expect.OK(t, lock.Update(t.Context(), named("a")))
		want(t, gate, false, "the answer came when validity had ended")
	})
}

func TestClosesAtOnce(t *testing.T) {
	for name, lose := range map[string]func(*lease){
		"another holder": func(l *lease) { other := named("b"); l.record = &other },
		"no holder":      func(l *lease) { none := named(""); l.record = &none },
		"no lease":       func(l *lease) { l.record = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate, inner, lock := acquired(t)
				lose(inner.lease)
				_, _, err := lock.Get(t.Context())
				want(t, gate, false, "after reading the lease")
				if name != "no lease" && !errors.Is(err, errLed) {
					t.Errorf("a process that led may lead again: %v", err)
				}
			})
		})
	}
}

// Failing calls and our own name in the lease say nothing new.
func TestFailuresChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, inner, lock := acquired(t)
		for _, fail := range []error{
			errors.New("connection refused"),
			apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "paddock-scheduler", errors.New("changed")),
		} {
			inner.set(fail)
			if err := lock.Update(t.Context(), named("a")); !errors.Is(err, fail) {
				t.Errorf("update: got %v, want %v", err, fail)
			}
			if _, _, err := lock.Get(t.Context()); !errors.Is(err, fail) {
				t.Errorf("get: got %v, want %v", err, fail)
			}
			want(t, gate, true, "after failures")
		}
		inner.set(nil)
		time.Sleep(renewDeadline)
		_, _, err := lock.Get(t.Context())
		expect.OK(t, err)
		want(t, gate, false, "our name in a lease that was not renewed")
	})
}

// When we give the lease away, we stop before another process can begin.
func TestReleaseClosesBeforeSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, inner, lock := acquired(t)
		inner.observed = func() { want(t, gate, false, "while the release is sent") }
		inner.set(errors.New("connection refused"))
		if err := lock.Update(t.Context(), named("")); err == nil {
			t.Error("the release did not fail")
		}
		want(t, gate, false, "after a release that failed")
	})
}

// TestWait: a waiting goroutine goes on when the process begins to lead, not when its context
// ends. After that no call waits.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := gate.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closed gate: got %v, want the context's error", err)
		}
		woken := make(chan error)
		go func() { woken <- gate.Wait(t.Context()) }()
		synctest.Wait()
		gate.extend(gate.now().add(renewDeadline))
		expect.OK(t, <-woken)
		time.Sleep(renewDeadline)
		want(t, gate, false, "at the end")
		expect.OK(t, gate.Wait(t.Context()))
	})
}

// TestClosesWhenTheMachineSlept: the gate is closed by the wall clock alone.
func TestClosesWhenTheMachineSlept(t *testing.T) {
	gate := NewGate()
	slept := gate.now().add(renewDeadline)
	gate.extend(slept)
	slept.wall = gate.now().wall
	gate.until.Store(&slept)
	want(t, gate, false, "after the machine slept")
	gate.extend(gate.now().add(renewDeadline))
	want(t, gate, true, "renewed after the machine slept")
}

func TestMomentBeforeNeedsBothClocks(t *testing.T) {
	now := momentOf(time.Now(), time.Now())
	later := now.add(time.Second)
	asleep := moment{monotonic: now.monotonic, wall: later.wall.Add(time.Second)}
	setBack := moment{monotonic: later.monotonic + 1, wall: now.wall}
	for _, test := range []struct {
		name string
		m    moment
		want bool
	}{
		{"earlier", now, true},
		{"equal", later, false},
		{"the machine slept", asleep, false},
		{"the wall clock was set back", setBack, false},
	} {
		expect.Same(t, test.name+": before", test.want, test.m.before(later))
	}
}

// Two real electors on one lease. At no time do both gates say yes, though the
// first cannot reach the API server and does not know that it lost; and the
// second takes over.
func TestTwoElectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &lease{}
		gates := map[string]*Gate{"a": NewGate(), "b": NewGate()}
		locks := map[string]*fakeLock{}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, id := range []string{"a", "b"} {
			locks[id] = &fakeLock{lease: shared, identity: id}
			elector := newElector(t, Watch(locks[id], gates[id], renewDeadline))
			running.Go(func() { elector.Run(ctx) })
			synctest.Wait() // a is first
		}
		want(t, gates["a"], true, "a is first")

		locks["a"].set(errors.New("no route to host"))
		held := map[string]int{}
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if gates["a"].Leading() && gates["b"].Leading() {
				t.Fatal("both lead")
			}
			for id, gate := range gates {
				if gate.Leading() {
					held[id]++
				}
			}
		}
		if held["a"] == 0 || held["b"] == 0 {
			t.Errorf("leading samples %v, want both to have led", held)
		}
		want(t, gates["b"], true, "after a minute")

		cancel()
		running.Wait()
		want(t, gates["b"], false, "after b released the lease")
	})
}

// newElector returns an elector with upstream's timing.
func newElector(t *testing.T, lock resourcelock.Interface) *leaderelection.LeaderElector {
	t.Helper()
	return expect.Get(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Name:            "test",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
	}))(t)
}
