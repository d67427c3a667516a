package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme" // arguments of Coscheduling

	_ "github.com/paddock-scheduler/paddock/apis/config/scheme" // arguments of our plugins
	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

const (
	managed = "yunikorn"          // the profile for pods in queues
	plain   = "default-scheduler" // the other profile
	alien   = "other-scheduler"   // a scheduler of another process

	configNamespace = "paddock"
)

// chance is the source of all random choices.
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

// valid returns a random configuration that is valid: some queues have guarantees, and others lend.
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

// invalid returns a document that is invalid.
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
