package app

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/web"
)

// FuzzFollower passes a process two arbitrary ConfigMaps at its start, and again while a
// valid configuration is in force. An invalid document changes nothing and the error is
// reported; a valid one is put into force.
func FuzzFollower(f *testing.F) {
	metrics.Register()
	for _, s := range followerSeeds(f) {
		f.Add(s.group, s.defaults, s.configs, s.key, s.packed)
	}
	f.Fuzz(func(t *testing.T, group, defaults, configs, key string, packed []byte) {
		for _, wrong := range (&fuzzed{group, defaults, configs, key, packed}).live(t, planted{}) {
			t.Error(wrong)
		}
	})
}

// fuzzed is the content of the two ConfigMaps.
type fuzzed struct {
	group    string // service.policyGroup of the defaults; empty for none
	defaults string // queues.yaml of the defaults
	configs  string // queues.yaml of the other one; empty for none
	key      string // of binaryData of the other one; empty for none
	packed   []byte
}

// followerSeeds are valid documents, small and large, and one invalid document of each kind.
func followerSeeds(t testing.TB) []fuzzed {
	large := "partitions:\n- name: default\n  placementrules: [{name: provided}, {name: tag, value: namespace, create: true}]\n  queues:\n  - name: root\n    submitacl: '*'\n    queues:\n"
	for i := range 20 {
		large += fmt.Sprintf("    - {name: q%d, resources: {guaranteed: {vcore: %d, memory: 1Gi}, max: {vcore: 50}}, properties: {preemption.delay: 5s}, queues: [{name: a}, {name: b}]}\n", i, i)
	}
	out := []fuzzed{
		{}, {defaults: plugintest.Document("{vcore: 3}")}, {defaults: brokenDocument}, {defaults: brokenDocument, configs: plugintest.Document("{vcore: 1}")},
		{configs: "# nothing\n"}, {configs: "checksum: x\n" + plugintest.Document("{vcore: 1}")}, {configs: large}, {group: "mine", key: "mine.yaml.gz", packed: expect.Gzipped(large)},
		{group: "mine", configs: brokenDocument}, {key: "queues.yaml.gz", packed: expect.Gzipped(brokenDocument)}, {key: "queues.yaml.gz", packed: expect.Gzipped(large)[:50]},
		{key: "queues.yaml.gz", packed: []byte("no gzip")}, {key: "queues.yaml", packed: []byte("\xff")}, {key: "other", packed: []byte("\xff"), configs: "\xff"},
		{key: "Queues.yaml.gz", packed: expect.Gzipped(large)}, {group: "mine", configs: large},
		{key: "service.policyGroup.gz", packed: expect.Gzipped("queues")},
	}
	const queues = "partitions:\n- name: default\n  queues:\n  - name: root\n    "
	for _, wrong := range []string{
		"partitions: [", "partitions: *nothing", "partitions:\n\t- x", "---\n---\n", "7", "partitions: []", "partitions: [{name: gpu}]", "partitions: [{name: default}]",
		"partitions: [{name: default, nodesortpolicy: {type: bin}, queues: [{name: root}]}]", "partitions: [{name: default, placementrules: [{name: nope}], queues: [{name: root}]}]",
		"partitions: [{name: default, placementrules: [{name: fixed, value: a.b}], queues: [{name: root}]}]", "partitions:\n- name: default\n  queues: &all\n  - name: root\n    queues: *all\n",
		queues + "submitacl: a b c", queues + "maxapplications: lots", queues + "unknown: 1", queues + "resources: {max: {vcore: 1}}", queues + "queues: [{name: a}, {name: A}]",
		queues + "queues: [{name: a, resources: {max: {vcore: -1}}}]", queues + "queues: [{name: a, resources: {guaranteed: {vcore: 3}, max: {vcore: 2}}}]",
		queues + "limits: [{limit: nobody}]", queues + "limits: [{users: [a], maxapplications: 1}]\n    queues: [{name: a, limits: [{users: [a], maxapplications: 2}]}]",
	} {
		out = append(out, fuzzed{configs: wrong})
	}
	return out
}

// configMaps returns the defaults and the other ConfigMap.
func (z *fuzzed) configMaps() (defaults, configs *corev1.ConfigMap) {
	defaults = plugintest.Queues(z.defaults)
	defaults.Name, defaults.UID = config.DefaultsConfigMap, "defaults"
	if z.group != "" {
		defaults.Data["service.policyGroup"] = z.group
	}
	if z.configs == "" && z.key == "" {
		return defaults, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: config.QueuesConfigMap}}
	}
	configs = plugintest.Queues(z.configs)
	if z.configs == "" {
		configs.Data = nil
	}
	if z.key != "" {
		configs.BinaryData = map[string][]byte{z.key: z.packed}
	}
	return defaults, configs
}

// live runs a process that follows the ConfigMaps while they are created and deleted, one
// at a time, and returns its errors.
func (z *fuzzed) live(t *testing.T, plant planted) []string {
	defaults, configs := z.configMaps()
	valid, absent := plugintest.Queues(plugintest.Document("{vcore: 1}")), &corev1.ConfigMap{}
	absent.Name = config.DefaultsConfigMap
	l := newLife(t, plant)
	var wrong []string
	for _, step := range []struct {
		name              string
		defaults, configs *corev1.ConfigMap
	}{
		{"at the start", defaults, configs}, {"without defaults", absent, configs}, {"repaired", absent, valid},
		{"with defaults beside a valid document", defaults, valid}, {"later", defaults, configs},
	} {
		before := l.shown
		l.read(step.defaults, step.configs)
		for _, w := range l.judge(before, step.defaults, step.configs) {
			wrong = append(wrong, step.name+": "+w)
		}
	}
	return wrong
}

// life is the part of a process that follows two ConfigMaps, with one running and one waiting pod.
type life struct {
	*follower
	source *informer.ConfigMaps
	clock  *clocktesting.FakeClock
	events []string // the objects and notes of all events
	shown  shown
	had    bool // there was a valid document
	own    bool // and the last was in yunikorn-configs
}

// shown is the visible state of a configuration.
type shown struct {
	spec    *config.Spec
	queues  *queues.Snapshot
	changed int // pods, applications and nodes that changed for readers
	events  int
	waits   reasons.Reason // why the second pod waits
	pages   web.Configuration
	inForce bool
	health  error
	metric  float64 // paddock_config_last_reload_success
	check   error
}

func newLife(t *testing.T, plant planted) *life {
	t.Helper()
	l := &life{clock: clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))}
	p := &Process{Clock: l.clock, Leader: leader.Always()}
	l.follower = newFollower(store.New(config.Default(), store.Options{}), newAnnouncer(l, p.Leader.Leading), p, klog.Logger{})
	l.announcer.look() // it leads from now on
	now := l.clock.Now()
	pod := objects.Pod{Identity: objects.Identity{UID: "uid-runs", Namespace: "ns", Name: "runs", Created: now, Labels: plugintest.Pod("p", 1).Labels},
		Status:  objects.Status{Node: "n"},
		Request: resources.VectorOf(resources.Entry{Name: resources.CPU, Amount: 1})}
	l.store.UpsertNode("n", pod.Request, now)
	l.store.Upsert(pod, now)
	pod.UID, pod.Name, pod.Node = "uid-waits", "waits", ""
	l.store.Upsert(pod, now)
	plant.follower = l.follower
	client := &fake.Clientset{}
	l.source = expect.Get(informer.NewConfigMaps(client, plugintest.Namespace, plant, klog.Logger{}))(t)
	l.look()
	return l
}

// Eventf makes life a recorder of events.
func (l *life) Eventf(regarding, _ runtime.Object, _, _, _, note string, args ...any) {
	l.events = append(l.events, regarding.(*corev1.ConfigMap).Name+": "+fmt.Sprintf(note, args...))
}

// read makes the process read the ConfigMaps and do the resulting work.
func (l *life) read(defaults, configs *corev1.ConfigMap) {
	l.clock.Step(time.Second)
	l.source.Read(defaults, configs)
	if l.inForce() {
		l.store.Start(l.clock.Now())
	}
	l.announcer.look()
	l.look()
}

// look returns the visible state.
func (l *life) look() {
	l.shown = shown{
		spec: l.store.Spec(), queues: l.store.Snapshot(), events: len(l.events), waits: l.store.Explain("uid-waits"),
		pages: l.configuration(), inForce: l.inForce(), health: l.follower.check().Run(),
		check: l.store.Check(), metric: metric("paddock_config_last_reload_success"),
	}
	for all := false; !all; {
		c := l.store.TakeChanges(1000)
		l.shown.changed += len(c.GonePods) + len(c.GoneApps) + len(c.GoneNodes) + len(c.Pods) + len(c.Apps) + len(c.Nodes)
		all = c.Rest != nil
	}
}

// metric is the sum of the values of a metric.
func metric(name string) (sum float64) {
	families, _ := legacyregistry.DefaultGatherer.Gather() // what could be read
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// faults are what is wrong.
type faults []string

// unless adds a fault unless something holds.
func (f *faults) unless(holds bool, text string, args ...any) {
	if !holds {
		*f = append(*f, fmt.Sprintf(text, args...))
	}
}

// judge returns what is wrong with the visible state, given the ConfigMaps.
func (l *life) judge(before shown, defaults, configs *corev1.ConfigMap) (wrong faults) {
	spec, err := l.meaning(defaults, configs)
	switch {
	case err == nil:
		wrong = l.accepted(before, spec)
	case configs.UID == "" && defaults.UID != "":
		wrong = l.refused(before, err, config.DefaultsConfigMap)
	default:
		wrong = l.refused(before, err, config.QueuesConfigMap)
	}
	wrong.unless(l.shown.check == nil, "the books are wrong: %v", l.shown.check)
	return wrong
}

// meaning parses the ConfigMaps, or returns why they cannot be used.
func (l *life) meaning(defaults, configs *corev1.ConfigMap) (*config.Spec, error) {
	document, options, err := config.FromConfigMaps(config.Source{Data: defaults.Data, BinaryData: defaults.BinaryData},
		config.Source{Data: configs.Data, BinaryData: configs.BinaryData})
	if err != nil {
		return nil, err
	}
	key := config.DocumentKey(options)
	like, ofDefaults := misspelt(configs), hasDocument(defaults, key) && !hasDocument(configs, key)
	if ofDefaults && (l.own || len(like) > 0) {
		return nil, informer.ErrFallsBack(key, like)
	}
	spec, err := config.Parse(document)
	if err == nil && spec.Document == "" && (defaults.UID != "" || configs.UID != "" || l.had) {
		return nil, config.ErrNoDocument(key)
	}
	if err == nil && spec.Document != "" {
		l.had, l.own = true, hasDocument(configs, key)
	}
	return spec, err
}

// misspelt returns the keys of a ConfigMap without the document that may have been meant for it.
func misspelt(m *corev1.ConfigMap) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(m.Data)), maps.Keys(m.BinaryData))
	like := slices.DeleteFunc(keys, func(k string) bool {
		lower := strings.ToLower(k)
		return !strings.Contains(lower, ".yaml") && !strings.Contains(lower, ".yml")
	})
	slices.Sort(like)
	return slices.Compact(like)
}

// hasDocument reports whether a ConfigMap has the key of the document.
func hasDocument(m *corev1.ConfigMap, key string) bool {
	_, plain := m.Data[key]
	_, packed := m.BinaryData[key+".gz"]
	return plain || packed
}

// refused checks the state after an invalid document.
func (l *life) refused(before shown, err error, about string) (wrong faults) {
	now := l.shown
	same := now.spec == before.spec && now.queues == before.queues && now.inForce == before.inForce
	shown := now.pages.Source == before.pages.Source && now.pages.Since.Equal(before.pages.Since)
	wrong.unless(same && shown && now.changed == 0, "refused, and something changed: %d things, document %q after %q",
		now.changed, now.spec.Document, before.spec.Document)
	f := now.pages.Failure
	told := f != nil && f.Err.Error() == err.Error() && f.Corrected.IsZero()
	wrong.unless(told && errors.Is(now.health, f.Err), "the pages say %+v of %v, and the health check %v", f, err, now.health)
	wrong.unless(now.metric == 0, "the metric says that the last read succeeded")
	problem := firstOf(err)
	head, waits := "the configuration before stays in force: ", now.waits == before.waits
	if !now.inForce {
		head = "no pod of a queue is scheduled before there is a valid one: "
		waits = now.waits.Code == reasons.ConfigurationInvalid && strings.Contains(now.waits.Text, problem)
	}
	wrong.unless(waits, "the pod waits for %v, and before for %v", now.waits, before.waits)
	last := ""
	if now.events > 0 {
		last = l.events[now.events-1]
	}
	note, ok := strings.CutPrefix(last, about+": ")
	ok = ok && strings.HasPrefix(note, head+problem) && len(note) <= 1024 && utf8.ValidString(note)
	wrong.unless(ok && problem != "", "the last event is %q, want one about %s with %q", last, about, head+problem)
	return wrong
}

// firstOf returns the beginning of an error text.
func firstOf(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	first = strings.ToValidUTF8(first, "\uFFFD")
	return strings.TrimRight(strings.ToValidUTF8(first[:min(len(first), 200)], ""), ". ")
}

// accepted checks the state after a valid document.
func (l *life) accepted(before shown, spec *config.Spec) (wrong faults) {
	now := l.shown
	inForce := now.inForce && now.spec.Checksum == spec.Checksum
	wrong.unless(inForce, "document %q is in force, want %q", now.spec.Document, spec.Document)
	again := before.inForce && before.spec.Checksum == spec.Checksum && now.spec != before.spec
	wrong.unless(!inForce || !again, "what was in force already was put into force again")
	if inForce && !again {
		queue := missing(now.queues, spec.Root)
		wrong.unless(queue == "", "there is no queue %s", queue)
	}
	f := now.pages.Failure
	wrong.unless((f == nil || !f.Corrected.IsZero()) && now.health == nil,
		"the pages say %+v of a valid document, and the health check %v", f, now.health)
	wrong.unless(now.metric == 1, "the metric says that the last read failed")
	wrong.unless(now.events <= before.events && now.waits.Code != reasons.ConfigurationInvalid,
		"valid, and an event says %q, or the pod waits for %v", l.events[before.events:], now.waits)
	return wrong
}

// missing returns the first configured queue that does not exist; empty for none.
func missing(in *queues.Snapshot, q *config.Queue) string {
	if found, ok := in.Find(q.Path); !ok || !found.Managed {
		return q.Path
	}
	for _, c := range q.Children {
		if path := missing(in, c); path != "" {
			return path
		}
	}
	return ""
}

// planted receives documents in place of a follower.
type planted struct {
	*follower
	// loaded is what it does with a valid document, nil for what is right, and failed what
	// it also does with another one, nil for nothing.
	loaded func(f *follower, spec *config.Spec, source string)
	failed func(f *follower)
}

func (p planted) Loaded(spec *config.Spec, source string) {
	if p.loaded == nil {
		p.loaded = (*follower).Loaded
	}
	p.loaded(p.follower, spec, source)
}

func (p planted) Failed(err error, source string, about *corev1.ConfigMap) {
	p.follower.Failed(err, source, about)
	if p.failed != nil {
		p.failed(p.follower)
	}
}

// TestWrongFollowersAreFound plants followers with forbidden behaviour.
func TestWrongFollowersAreFound(t *testing.T) {
	metrics.Register()
	other := spec(t, "other")
	var first *config.Spec
	for _, test := range []struct {
		name, want string // want is what each finding contains; empty for no finding
		failed     func(f *follower)
		loaded     func(f *follower, s *config.Spec, at string)
	}{
		{"as it is", "", nil, nil},
		{"puts something else into force", "refused, and something changed", func(f *follower) {
			f.store.Configure(other, f.process.Clock.Now())
		}, nil},
		{"forgets a pod", "refused, and something changed", func(f *follower) {
			f.store.Delete("uid-runs", f.process.Clock.Now())
		}, nil},
		{"says that it is wrong, and not what", "the last event is", func(f *follower) {
			bad := reasons.New(reasons.ConfigurationInvalid, "the configuration before stays in force: bad")
			f.complain(f.about, bad)
		}, nil},
		{"tells the pages something else", "the pages say", func(f *follower) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.setFailure(errors.New("bad"), "x")
		}, nil},
		{"leaves the metric as it is", "the metric says", func(f *follower) {
			metrics.ConfigLoaded(f.process.Clock.Now())
		}, nil},
		{"tells pods something else", "the pod waits for", func(f *follower) {
			f.store.SetNotReady(reasons.New(reasons.Starting, "later"))
		}, nil},
		{"keeps the first document", "is in force, want", nil, func(f *follower, s *config.Spec, at string) {
			first = cmp.Or(first, s)
			f.Loaded(first, at)
		}},
		{"does it twice", "put into force again", nil, func(f *follower, s *config.Spec, at string) {
			f.Loaded(s, at)
			f.store.Configure(s, f.process.Clock.Now())
		}},
		{"complains all the same", "valid, and an event says", nil, func(f *follower, s *config.Spec, at string) {
			f.Loaded(s, at)
			f.complain(plugintest.Queues(""), reasons.New(reasons.ConfigurationInvalid, "%s", s.Checksum))
		}},
		{"leaves out a queue", "there is no queue", nil, func(f *follower, s *config.Spec, at string) {
			f.Loaded(&config.Spec{Root: config.Default().Root, Checksum: s.Checksum}, at)
		}},
	} {
		var found []string
		for _, z := range []fuzzed{
			{defaults: plugintest.Document("{vcore: 5}"), configs: brokenDocument}, {defaults: plugintest.Document("{vcore: 5}")},
			{configs: "checksum: x\n" + plugintest.Document("{vcore: 1}")},
		} {
			first = nil
			found = append(found, z.live(t, planted{failed: test.failed, loaded: test.loaded})...)
		}
		others := slices.ContainsFunc(found, func(s string) bool { return !strings.Contains(s, test.want) })
		expect.That(t, (test.want == "") == (len(found) == 0) && !others,
			"%s: found %q, want %q", test.name, found, test.want)
	}
}
