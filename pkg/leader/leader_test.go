package leader

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// fakeLock is one replica's access to the lease.
type fakeLock struct {
	resourcelock.LeaseLock

	fail     atomic.Pointer[error] // every call fails with it
	delay    time.Duration         // every write arrives at once, but answers late
	observed func()                // called at the start of each write
	looked   func()                // called at the start of each read
}

func newLock(api *fake.Clientset, identity string) *fakeLock {
	return &fakeLock{LeaseLock: resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "paddock-scheduler"}, Client: api.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
}

func (l *fakeLock) set(fail error) { l.fail.Store(&fail) }

func (l *fakeLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.looked != nil {
		l.looked()
	}
	if fail := l.fail.Load(); fail != nil && *fail != nil {
		return nil, nil, *fail
	}
	return l.LeaseLock.Get(ctx)
}

func (l *fakeLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(func() error { return l.LeaseLock.Create(ctx, record) })
}

func (l *fakeLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(func() error { return l.LeaseLock.Update(ctx, record) })
}

func (l *fakeLock) write(send func() error) error {
	if l.observed != nil {
		l.observed()
	}
	if fail := l.fail.Load(); fail != nil && *fail != nil {
		return *fail
	}
	err := send()
	time.Sleep(l.delay)
	return err
}

func named(identity string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{
		HolderIdentity: identity, LeaseDurationSeconds: int(leaseDuration / time.Second),
	}
}

func want(t *testing.T, gate *Gate, leading bool, when string) {
	t.Helper()
	expect.Same(t, when+": leading", leading, gate.Leading())
}

// led is a gate and its lock, which is inner under Watch.
type led struct {
	gate  *Gate
	inner *fakeLock
	lock  resourcelock.Interface
}

func (l *led) wantAfter(t *testing.T, d time.Duration, leading bool, when string) {
	t.Helper()
	time.Sleep(d) // inside a synctest bubble
	want(t, l.gate, leading, when)
}

// acquired returns a gate that has just been opened by creating the lease.
func acquired(t *testing.T) *led {
	t.Helper()
	l := &led{gate: NewGate(), inner: newLock(fake.NewClientset(), "a")}
	l.lock = Watch(l.inner, l.gate, renewDeadline)
	want(t, l.gate, false, "before")
	expect.OK(t, l.lock.Create(t.Context(), named("a")))
	want(t, l.gate, true, "after creating the lease")
	return l
}

func TestAlways(t *testing.T) {
	gate := Always()
	want(t, gate, true, "always")
	gate.close()
	gate.extend(gate.now().add(time.Hour))
	want(t, gate, true, "always, whatever happens")
	expect.OK(t, gate.Wait(t.Context()))
}

func TestGateOfALease(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, l *led){
		"it closes by itself when renewals stop, on the very nanosecond": func(t *testing.T, l *led) {
			l.wantAfter(t, renewDeadline-time.Nanosecond, true, "just before the end")
			expect.OK(t, l.lock.Update(t.Context(), named("a")))
			l.wantAfter(t, renewDeadline-time.Nanosecond, true, "just before the end, renewed")
			l.wantAfter(t, time.Nanosecond, false, "at the end")
			expect.OK(t, l.lock.Update(t.Context(), named("a")))
			want(t, l.gate, true, "renewed after the end")
		},
		"a lease shorter than the validity passed to Watch is not stretched": func(t *testing.T, l *led) {
			time.Sleep(renewDeadline)
			short := named("a")
			short.LeaseDurationSeconds = 3
			expect.OK(t, l.lock.Update(t.Context(), short))
			l.wantAfter(t, 3*time.Second-time.Nanosecond, true, "before the end of the lease")
			l.wantAfter(t, time.Nanosecond, false, "at the end of the lease")
		},
		"validity counts from when the write was sent, not from when it was answered": func(t *testing.T, l *led) {
			l.inner.delay = 4 * time.Second
			expect.OK(t, l.lock.Update(t.Context(), named("a")))
			l.wantAfter(t, renewDeadline-l.inner.delay-time.Nanosecond, true, "before the end")
			l.wantAfter(t, time.Nanosecond, false, "at the end")
			l.inner.delay = renewDeadline
			expect.OK(t, l.lock.Update(t.Context(), named("a")))
			want(t, l.gate, false, "the answer came when validity had ended")
		},
		"failing calls and our own name in the lease say nothing new": func(t *testing.T, l *led) {
			for _, fail := range []error{
				errors.New("connection refused"),
				apierrors.NewConflict(coordinationv1.Resource("leases"), "paddock-scheduler", errors.New("changed")),
			} {
				l.inner.set(fail)
				_, _, err := l.lock.Get(t.Context())
				got := []error{err, l.lock.Update(t.Context(), named("a"))}
				expect.Same(t, "errors of a read and a write", []error{fail, fail}, got, cmpopts.EquateErrors())
				want(t, l.gate, true, "after failures")
			}
			l.inner.set(nil)
			time.Sleep(renewDeadline)
			_, _, err := l.lock.Get(t.Context())
			expect.OK(t, err)
			want(t, l.gate, false, "our name in a lease that was not renewed")
		},
		"it closes before the lease is given away and another process can begin": func(t *testing.T, l *led) {
			l.inner.observed = func() { want(t, l.gate, false, "while the release is sent") }
			l.inner.set(errors.New("connection refused"))
			expect.Fails(t, l.lock.Update(t.Context(), named("")), "connection refused")
			want(t, l.gate, false, "after a release that failed")
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, acquired(t)) }) })
	}
}

func TestClosesAtOnce(t *testing.T) {
	for name, lose := range map[string]func(context.Context, *fakeLock) error{
		"another holder": func(ctx context.Context, l *fakeLock) error { return l.Update(ctx, named("b")) },
		"no holder":      func(ctx context.Context, l *fakeLock) error { return l.Update(ctx, named("")) },
		"no lease": func(ctx context.Context, l *fakeLock) error {
			return l.Client.Leases(l.LeaseMeta.Namespace).Delete(ctx, l.LeaseMeta.Name, metav1.DeleteOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := acquired(t)
				expect.OK(t, lose(t.Context(), l.inner))
				_, _, err := l.lock.Get(t.Context())
				want(t, l.gate, false, "after reading the lease")
				expect.That(t, name == "no lease" || errors.Is(err, errLed),
					"a process that led may lead again: %v", err)
			})
		})
	}
}

// TestWait: a waiting goroutine goes on when the process begins to lead, not when its context
// ends. After that no call waits.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := gate.Wait(ctx)
		expect.That(t, errors.Is(err, context.DeadlineExceeded), "closed gate: %v", err)
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
	for name, m := range map[string]moment{"equal": later, "asleep": asleep, "set back": setBack} {
		expect.That(t, !m.before(later), "%s: it is before", name)
	}
	expect.That(t, now.before(later), "earlier: it is not before")
}

// Two real electors on one lease. At no time do both gates say yes, though the first cannot reach the
// API server any more and does not know that it lost. The second takes the lease with its first look
// after the lease has run out, counted from when it saw the last renewal.
func TestTwoElectors(t *testing.T) {
	for range 8 { // the times of the looks are random
		synctest.Test(t, twoElectors)
	}
}

func twoElectors(t *testing.T) {
	shared := fake.NewClientset()
	a, b := newLock(shared, "a"), newLock(shared, "b")
	var renewed, took time.Time // by a, while it reached the API server; by b
	var looks []time.Time       // of b, until it took the lease
	a.observed = func() {
		if a.fail.Load() == nil {
			renewed = time.Now()
		}
	}
	b.looked = func() {
		if took.IsZero() {
			looks = append(looks, time.Now())
		}
	}
	b.observed = func() {
		if took.IsZero() {
			took = time.Now()
		}
	}
	gates := map[string]*Gate{"a": NewGate(), "b": NewGate()}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, lock := range []*fakeLock{a, b} {
		elector := newElector(t, Watch(lock, gates[lock.Identity()], renewDeadline))
		running.Go(func() { elector.Run(ctx) })
		synctest.Wait() // a is first
	}
	want(t, gates["a"], true, "a is first")

	held := map[string]int{}
	for i := range 900 {
		if i == 305 { // between two renewals
			a.set(errors.New("no route to host"))
		}
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
	expect.That(t, held["a"] != 0 && held["b"] != 0, "leading samples %v, want both to have led", held)
	want(t, gates["b"], true, "a minute after a was cut off")

	cancel()
	running.Wait()
	want(t, gates["b"], false, "after b released the lease")
	looks = slices.DeleteFunc(looks, func(at time.Time) bool { return at.Before(renewed) })
	ended := looks[0].Add(leaseDuration)
	before := looks[len(looks)-2]
	expect.That(t, before.Before(ended) && !took.Before(ended),
		"b took the lease at %v, want it with its first look from %v on: %v", took, ended, looks)
	// Upstream stretches each retry period by up to 1.2 times its length.
	const looksWithin = retryPeriod * 22 / 10
	after := took.Sub(renewed)
	expect.That(t, after <= looksWithin+leaseDuration+looksWithin,
		"b took the lease %v after the last renewal", after)
}

// newElector returns an elector with upstream's timing.
func newElector(t *testing.T, lock resourcelock.Interface) *leaderelection.LeaderElector {
	t.Helper()
	return expect.Get(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true, Name: "test",
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	}))(t)
}
