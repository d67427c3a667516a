package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	global "math/rand"
	"math/rand/v2"
	"regexp"
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
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme" // arguments of Coscheduling
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	_ "github.com/paddock-scheduler/paddock/apis/config/scheme" // arguments of our plugins
	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
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
	global.Seed(int64(seed)) //nolint:staticcheck // they use the global source; run_test.go makes it seedable
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
		defer holding(&s.mu)()
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

func (s *simulation) makeStep() error {
	s.api.locked(func() { s.neighbour.keepQuiet(false) })
	m := s.draw()
	s.move(m)
	s.breathe(time.Duration(m.n*m.n) * 5 * time.Millisecond)
	return s.check()
}

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
	defer holding(&s.api.mu)()
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
	defer holding(&s.mu)()
	s.faults = append(s.faults, fmt.Errorf(format, args...))
}

func (s *simulation) logf(format string, args ...any) {
	line := fmt.Sprintf("%5d %9.3fs %s", s.step.Load(), time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
	defer holding(&s.mu)()
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
	defer holding(&s.mu)()
	return errors.Join(s.faults...)
}

// faultOf decides how a call fails. That depends only on the seed, the subject of the
// call and the number of calls of its kind, not on the order of concurrent calls.
func (s *simulation) faultOf(in *instance, verb, name string) (f fault) {
	defer holding(&s.mu)()
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

func (s *simulation) podName(uid types.UID) string {
	name, _, _ := strings.Cut(string(uid), "-")
	return name
}

const (
	managed = "yunikorn"          // the profile for pods in queues
	plain   = "default-scheduler" // the other profile
	alien   = "other-scheduler"   // a scheduler of another process

	configNamespace = "paddock"
)

type chance struct{ *rand.Rand }

func newChance(seed uint64) chance { return chance{rand.New(rand.NewPCG(seed, 17))} }

func (r chance) of(n int) bool { return r.IntN(n) == 0 }

func pick[T any](r chance, list ...T) T { return list[r.IntN(len(list))] }

// leaves are the queues that pods name.
var leaves = []string{"root.a", "root.b.x", "root.b.y", "root.c", "root.d"}

// document is a configuration of queues as an administrator writes it.
type document struct {
	text string
	spec *config.Spec // nil for an invalid one
}

func (r chance) valid() document {
	var b strings.Builder
	fmt.Fprintf(&b, "partitions:\n- name: default\n  preemption: {enabled: %v}\n", !r.of(10))
	b.WriteString("  placementrules: [{name: provided, create: false}]\n  queues:\n  - name: root\n    submitacl: \"*\"\n    queues:\n")
	r.queue(&b, "    ", "a", true)
	r.queue(&b, "    ", "b", r.of(2))
	b.WriteString("      queues:\n")
	r.queue(&b, "      ", "x", r.of(2))
	r.queue(&b, "      ", "y", r.of(3))
	r.queue(&b, "    ", "c", r.of(3))
	if !r.of(20) {
		r.queue(&b, "    ", "d", r.of(2))
	}
	spec, err := config.Parse([]byte(b.String()))
	if err != nil { // b has a smaller guarantee than x and y together
		return r.valid()
	}
	return document{text: b.String(), spec: spec}
}

// turned returns a configuration with queue c as a parent.
func (d document) turned() document {
	text := queueC.ReplaceAllString(d.text, "${1}      queues:\n      - name: z\n")
	spec, err := config.Parse([]byte(text))
	if err != nil || text == d.text {
		panic(fmt.Sprintf("queue c is written in a way that is not known here: %v\n%s", err, text))
	}
	return document{text: text, spec: spec}
}

var queueC = regexp.MustCompile(`(- name: c\n(?: *resources: .*\n)? *properties: .*\n)`)

func (r chance) invalid() document {
	return document{text: pick(r, "partitions: 7", "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n    - name: a\n      resources: {max: {vcore: -1}}\n", "{{")}
}

func (r chance) queue(b *strings.Builder, indent, name string, guaranteed bool) {
	fmt.Fprintf(b, "%s- name: %s\n", indent, name)
	var resources []string
	if guaranteed {
		g := []string{fmt.Sprintf("vcore: %d", 1+r.IntN(6))}
		if r.of(4) {
			g = append(g, fmt.Sprintf("memory: %dGi", 1+r.IntN(4)))
		}
		resources = append(resources, "guaranteed: {"+strings.Join(g, ", ")+"}")
	}
	if r.of(4) {
		resources = append(resources, fmt.Sprintf("max: {vcore: %d, memory: %dGi}", 4+r.IntN(8), 6+r.IntN(10)))
	}
	if len(resources) > 0 {
		fmt.Fprintf(b, "%s  resources: {%s}\n", indent, strings.Join(resources, ", "))
	}
	properties := []string{fmt.Sprintf("preemption.delay: %ds", pick(r, 1, 3, 8))}
	switch r.IntN(12) {
	case 0:
		properties = append(properties, "preemption.policy: fence")
	case 1:
		properties = append(properties, "preemption.policy: disabled")
	case 2:
		properties = append(properties, "priority.policy: fence")
	case 3:
		properties = append(properties, fmt.Sprintf("priority.offset: %d", r.IntN(5)-2))
	}
	if r.of(4) {
		properties = append(properties, "application.sort.policy: fair")
	}
	fmt.Fprintf(b, "%s  properties: {%s}\n", indent, strings.Join(properties, ", "))
}

// arguments are the settings that vary between histories.
type arguments struct {
	window, maxVictims, startDelay int
	strict, foreign, asksInPlain   bool

	groups       bool // there are PodGroups
	groupBackoff int  // for so many seconds a PodGroup that found no room is not tried again
	beside       bool // there is a second scheduler
	taints       bool // held nodes are tainted
	turns        bool // a leaf becomes a parent now and then
	sickly       bool // pods that run may be not ready
	stuck        bool // some deleted pods do not end
	labels       bool // some pods require a label of their node
	limited      bool // queues have limits of users and groups, and maxapplications

	hostile  bool // there is a hostile tenant
	maxGrace int  // bounds the grace period of victims there, in seconds; 0 for none
	leave    bool // only DaemonSets of other namespaces may take guaranteed room there
	dynamic  bool // rules make queues there

	timeout int // of holds, in seconds: reservationTimeout, except for planted bugs

	hurried, claimed, endless bool // for planted bugs
}

func (r chance) arguments() arguments {
	return arguments{
		window: pick(r, 1, 2, 8), maxVictims: pick(r, 0, 0, 1, 3), startDelay: pick(r, 0, 0, 2), strict: r.of(3), foreign: r.of(3),
		asksInPlain: r.of(2), groups: r.of(4), groupBackoff: pick(r, 0, 0, 3), beside: r.of(3), taints: r.of(2), turns: r.of(10),
	}
}

const (
	retryInterval      = 10 // seconds
	reservationTimeout = 40 // seconds
	// refusedFor is how long a hold may stand on a node that refuses its asker. The asker is tried
	// at once; if the scheduler's snapshot has the old node then, again within retryInterval.
	// Calls that fail can delay that for the lease of a slot.
	refusedFor       = 15 // seconds
	refusedInTrouble = 30 // seconds
	permitWaiting    = 10 // seconds
)

// owners reads pods as the schedulers do, except where there is a hostile tenant.
var owners = informer.Options{ClaimedOwners: true}

// pluginArguments are the arguments of the plugins, with short delays.
const pluginArguments = `  pluginConfig:
  - name: QueueSort
    args:
      managedProfiles: [yunikorn]
      configNamespace: paddock
      restAddress: ""
      podInitialBackoff: 1s
      podMaxBackoff: 4s
      window: %[1]d
      maxWindow: 64
      slotLease: 15s
      daemonSetOwner: %[11]s
      maxDynamicQueues: %[13]d
      maxDynamicQueuesPerNamespace: %[14]d
  - name: QueuePreemption
    args: {strictGuarantee: %[2]t, maxVictimsPerRound: %[3]d, retryInterval: %[6]ds}
  - name: NodeReservation
    args: {reservationTimeout: %[7]ds, preemptionStartDelay: %[4]ds, preemptForeign: %[5]t, holdTaint: %[10]s%[12]s}
  - name: Coscheduling
    args: {permitWaitingTimeSeconds: %[8]d, podGroupRejectPercentage: 0, podGroupBackoffSeconds: %[9]d}
`

// shippedArguments matches the arguments of a profile as it is shipped.
var shippedArguments = regexp.MustCompile(`(?m)^  pluginConfig:\n(?:  .*\n)*`)

var decoded = map[arguments]*schedconfig.KubeSchedulerConfiguration{}

// configuration returns the shipped profiles with such arguments, and with the probe.
func configuration(t testing.TB, a arguments) *schedconfig.KubeSchedulerConfiguration {
	t.Helper()
	if cfg := decoded[a]; cfg != nil {
		return cfg.DeepCopy()
	}
	shipped := manifests.TwoProfiles
	if a.asksInPlain {
		shipped = manifests.TwoProfilesDaemonSets
	}
	cfg := decode(t, shipped, a)
	if a.groups {
		cfg.Profiles[1] = decode(t, manifests.WithPodGroups, a).Profiles[0]
	}
	cfg.PodInitialBackoffSeconds, cfg.PodMaxBackoffSeconds = 1, 4
	for _, profile := range cfg.Profiles {
		p, seen := profile.Plugins, schedconfig.Plugin{Name: probeName}
		p.PreFilter.Enabled = slices.Insert(p.PreFilter.Enabled, 0, seen)
		if profile.SchedulerName == plain {
			p.Reserve.Enabled = append(p.Reserve.Enabled, seen)
		}
	}
	expect.OK(t, validation.ValidateKubeSchedulerConfiguration(cfg))
	decoded[a] = cfg
	return cfg.DeepCopy()
}

// decode reads a shipped configuration with such arguments.
func decode(t testing.TB, shipped []byte, a arguments) *schedconfig.KubeSchedulerConfiguration {
	t.Helper()
	retry, taint, owner, rest := retryInterval, "Never", "Claimed", ""
	most, mostOfNamespace := mostQueues, mostQueuesOfNamespace
	if a.endless {
		most, mostOfNamespace = 0, 0
	}
	if a.hurried {
		retry = 1
	}
	if a.hostile && !a.claimed {
		owner = "Verified"
	}
	if a.maxGrace > 0 {
		rest += fmt.Sprintf(", maxVictimGrace: %ds", a.maxGrace)
	}
	if a.leave {
		rest += fmt.Sprintf(", daemonSetNamespaces: [%s]", strings.Join(namespaces, ", "))
	}
	if a.taints {
		taint = "Always"
	}
	args := fmt.Sprintf(pluginArguments, a.window, a.strict, a.maxVictims, a.startDelay, a.foreign, retry, a.timeout,
		permitWaiting, a.groupBackoff, taint, owner, rest, most, mostOfNamespace)
	text := shippedArguments.ReplaceAllLiteral(shipped, []byte(args))
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	expect.OK(t, err)
	return obj.(*schedconfig.KubeSchedulerConfiguration)
}
