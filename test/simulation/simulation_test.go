package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/leader"
)

// simulation is one history of a cluster: everything in it follows from the seed, as far
// as the goroutines of the schedulers allow.
type simulation struct {
	seed      uint64
	chance    chance
	bug       string // planted; empty for none
	api       *apiServer
	profiles  *schedconfig.KubeSchedulerConfiguration
	settings  arguments
	elects    bool // several processes, one of which leads
	instances []*instance
	launched  int
	began     time.Time
	step      atomic.Int64
	serial    int // of names
	document  document
	lastValid document
	validAt   int64                // the version since which it is valid
	unturned  document             // what the last turn replaced; empty for none
	removed   map[string]bool      // queues that at some time were not configured, or not as leaves
	lostNodes map[string]time.Time // since when
	neighbour *neighbour           // nil for none
	guard     *guard
	kept      map[types.UID]kept // by asker; guarded by api.mu
	// ties has, by UID, the pods with an affinity to one node; sets the keys of all
	// DaemonSets that ever were.
	ties, sets sync.Map
	choosy     sync.Map           // by UID, the pods that require a label of their node
	misled     misled             // pods, of demand
	astray     map[types.UID]bool // pods of which the hostile tenant has changed the queue
	evilSets   int                // DaemonSets that the hostile tenant has made
	ends       chan struct{}      // closed when the history ends

	counts  []atomic.Int64
	trouble atomic.Int64 // percentage of calls that fail

	mu      sync.Mutex // guards the fields below
	faults  []error
	told    []string       // the latest log lines
	tries   map[string]int // calls of a kind
	instant time.Time      // of the latest call
	atOnce  int            // calls in that instant
}

// mostAtOnce is how many calls may be made without time passing. Further calls take a
// little time each, as all calls do on a real cluster: upstream's preemption tries again
// without waiting, to remove the nomination of a pod until it sees that the pod is gone.
const mostAtOnce = 500

// remembered is how many log lines of a history are shown when it fails.
const remembered = 80

// result is the outcome of a history.
type result struct {
	seed   uint64
	steps  int
	counts []atomic.Int64
	err    error
	last   []string // the last events
}

// live runs a history in a bubble with virtual time. All its goroutines have the seed as
// a label, which is in the stacks that a panic prints.
func live(t *testing.T, seed uint64, steps int, bug string) (r result) {
	t.Helper()
	// Other sources of randomness: upstream's choice among equal nodes, and the jitter of clients.
	rand.Seed(int64(seed)) //nolint:staticcheck // they use the global source; run_test.go makes it seedable
	utilrand.Seed(int64(seed))
	defer app.SetLeader(leader.Always())
	defer pprof.SetGoroutineLabels(context.Background())
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("seed", strconv.FormatUint(seed, 10))))
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, seed, bug)
		watched.begin(s)
		defer watched.end()
		defer s.end()
		err := s.run(steps)
		s.mu.Lock()
		defer s.mu.Unlock()
		r = result{seed: seed, steps: int(s.step.Load()), counts: s.counts, err: err, last: slices.Clone(s.told)}
	})
	return r
}

func newSimulation(t testing.TB, seed uint64, bug string) *simulation {
	s := &simulation{
		seed: seed, chance: newChance(seed), bug: bug, api: newAPIServer(), began: time.Now(), lostNodes: map[string]time.Time{},
		removed: map[string]bool{}, tries: map[string]int{}, ends: make(chan struct{}), kept: map[types.UID]kept{}, astray: map[types.UID]bool{}, counts: make([]atomic.Int64, len(counters)),
	}
	s.settings = s.chance.arguments()
	s.settings.timeout = reservationTimeout
	s.letIn()
	s.settings.sickly = seed%4 == 2 || bug == bugUnhealthy
	s.settings.stuck = seed%4 == 0 || bug == bugOverdue || bug == bugGroupPatient
	s.settings.labels = seed%7 == 3 || bug == bugMislabelled
	s.settings.limited = seed%4 == 1 || slices.Contains([]string{bugUserLimit, bugMaxApps, bugNeverBack, bugUnlimited}, bug)
	s.settings.groups = s.settings.groups || bug == bugHalves || bug == bugGroupDeaf || bug == bugOwnMate || bug == bugGroupAlone || bug == bugOneByOne || bug == bugMembers
	s.suit()
	s.profiles = configuration(t, s.configured())
	s.elects = s.chance.of(3) && !slices.Contains(undated, bug) || bug == bugNoGate || bug == bugVacant
	// As in with-podgroups, see docs/decisions.md.
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(features.NominatedNodeNameForExpectation): !s.settings.groups}))
	if s.settings.hostile {
		s.api.sets = s.api.define(appsv1.GroupName, "daemonsets", &appsv1.DaemonSetList{})
	}
	if s.settings.groups {
		s.api.groups = s.api.define(v1alpha1.SchemeGroupVersion.Group, "podgroups", &v1alpha1.PodGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "PodGroupList", APIVersion: v1alpha1.SchemeGroupVersion.String()},
		})
	}
	s.build()
	s.moveIn()
	s.guard = newGuard(s)
	go s.beside(s.ends)
	return s
}

// run makes so many steps, and checks for rest at every hundredth and at the end.
func (s *simulation) run(steps int) error {
	s.launch()
	if err := s.wrong(); err != nil {
		return err
	}
	for step := 1; step <= steps; step++ {
		s.step.Store(int64(step))
		if err := s.makeStep(); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if step%100 == 0 {
			if err := s.rest(); err != nil {
				return fmt.Errorf("at rest after step %d: %w", step, err)
			}
		}
	}
	if err := s.clear(); err != nil {
		return fmt.Errorf("when all is gone: %w", err)
	}
	return nil
}

func (s *simulation) end() {
	close(s.ends)
	for _, in := range s.instances {
		in.stop()
	}
	// Upstream's metrics check once a second whether they may end, and a pod waits at
	// Permit until its time is over.
	time.Sleep((permitWaiting + 2) * time.Second)
}

// makeStep makes a random move, lets all processes react, and checks for faults.
func (s *simulation) makeStep() error {
	s.api.locked(func() { s.neighbour.keepQuiet(false) })
	m := s.draw()
	s.move(m)
	s.breathe(time.Duration(m.n*m.n) * 5 * time.Millisecond)
	return s.check()
}

// breathe lets time pass and all processes work.
func (s *simulation) breathe(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	s.kubelets()
	s.bury()
	synctest.Wait()
	s.learn()
	watched.alive()
}

// learn notes the versions that every process has seen by now.
func (s *simulation) learn() {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	for _, in := range s.instances {
		known := map[*kind]int64{}
		for _, k := range s.api.kinds {
			known[k] = max(in.known[k], s.api.knows(in, k)) // 0 while a watch is down
		}
		in.known = known
		in.strandBeside()
		in.interceptor.judgeHoldTimes()
	}
}

// bury stops processes that have died, and starts others in their place.
func (s *simulation) bury() {
	for _, in := range slices.Clone(s.instances) {
		if in.dead.Load() {
			s.logf("%s is dead", in.name)
			s.instances = slices.DeleteFunc(s.instances, func(other *instance) bool { return other == in })
			in.stop()
		}
	}
	if len(s.instances) == 0 {
		s.launch()
	}
}

func (s *simulation) fault(format string, args ...any) {
	s.logf("WRONG: "+format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Errorf(format, args...))
}

func (s *simulation) logf(format string, args ...any) {
	line := fmt.Sprintf("%5d %9.3fs %s", s.step.Load(), time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
	s.mu.Lock()
	defer s.mu.Unlock()
	if trace != nil {
		fmt.Fprintln(trace, line)
	}
	if s.told = append(s.told, line); len(s.told) > 2*remembered {
		s.told = slices.Clone(s.told[len(s.told)-remembered:])
	}
}

// trace, if set, gets all log lines.
var trace io.Writer

func (s *simulation) wrong() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.faults...)
}

// faultOf decides how a call fails. That depends only on the seed, the subject of the
// call and the number of calls of its kind, not on the order of concurrent calls.
func (s *simulation) faultOf(in *instance, verb, name string) (f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := in.name + " " + verb + " " + name
	s.tries[key]++
	if now := time.Now(); now.Equal(s.instant) {
		s.atOnce++
	} else {
		s.instant, s.atOnce = now, 0
	}
	if s.atOnce > mostAtOnce {
		f.before = time.Millisecond
	}
	trouble := int(s.trouble.Load())
	if trouble == 0 {
		return f
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", s.seed, key, s.tries[key])
	r := newChance(h.Sum64())
	if r.of(4) {
		f.before = time.Duration(r.IntN(400)) * time.Millisecond
	}
	if r.IntN(100) >= trouble {
		return f
	}
	about := schema.GroupResource{Resource: verb}
	switch r.IntN(8) {
	case 0:
		f.refuse = apierrors.NewConflict(about, name, errors.New("it was changed"))
	case 1:
		f.refuse = apierrors.NewServerTimeout(about, verb, 1)
	case 2:
		f.refuse = apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	case 3:
		f.refuse = apierrors.NewTooManyRequests("wait", 1)
	case 4:
		f.before, f.arrives = time.Duration(1+r.IntN(8))*time.Second, r.of(2)
	case 5:
		f.after = time.Duration(1+r.IntN(8)) * time.Second
	default:
		f.lost = true
	}
	return f
}

// podName returns the name of a pod by its UID.
func (s *simulation) podName(uid types.UID) string {
	name, _, _ := strings.Cut(string(uid), ".")
	return name
}
