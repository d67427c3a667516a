package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
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
		for _, wrong := range (&fuzzed{group, defaults, configs, key, packed}).live(t, unchanged) {
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

// followerSeeds are valid documents, small and large, and one invalid document of each
// kind.
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
// at a time, and returns its errors. Plant may replace the follower by a handler with a
// bug.
func (z *fuzzed) live(t *testing.T, plant func(*follower) informer.ConfigHandler) []string {
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

// life is the part of a process that follows two ConfigMaps, with one running and one
// waiting pod.
type life struct {
	*follower
	source *informer.ConfigMaps
	clock  *clocktesting.FakeClock
	events []string // the objects and notes of all events
	shown  shown
	parsed map[string]parsed // by document
	had    bool              // there was a valid document
	own    bool              // and the last was in yunikorn-configs
}

// parsed is the parsed document, or why it cannot be used.
type parsed struct {
	spec *config.Spec
	err  error
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

func newLife(t *testing.T, plant func(*follower) informer.ConfigHandler) *life {
	t.Helper()
	l := &life{clock: clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0)), parsed: map[string]parsed{}}
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
	var err error
	l.source, err = informer.NewConfigMaps(&fake.Clientset{}, plugintest.Namespace, plant(l.follower), klog.Logger{})
	expect.OK(t, err)
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
		pages: l.configuration(), inForce: l.inForce(), health: l.follower.check().Run(nil), metric: lastReload(), check: l.store.Check(),
	}
	for all := false; !all; {
		c := l.store.TakeChanges(1000)
		l.shown.changed += len(c.GonePods) + len(c.GoneApps) + len(c.GoneNodes) + len(c.Pods) + len(c.Apps) + len(c.Nodes)
		all = c.Rest != nil
	}
}

// lastReload is the value of paddock_config_last_reload_success.
func lastReload() float64 {
	families, _ := legacyregistry.DefaultGatherer.Gather() // what could be read
	for _, f := range families {
		if f.GetName() == "paddock_config_last_reload_success" && len(f.GetMetric()) == 1 {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// judge returns what is wrong with the visible state, given the ConfigMaps.
func (l *life) judge(before shown, defaults, configs *corev1.ConfigMap) (wrong []string) {
	spec, err := l.meaning(defaults, configs)
	switch {
	case err == nil:
		wrong = l.accepted(before, spec)
	case configs.UID == "" && defaults.UID != "":
		wrong = l.refused(before, err, config.DefaultsConfigMap)
	default:
		wrong = l.refused(before, err, config.QueuesConfigMap)
	}
	if l.shown.check != nil {
		wrong = append(wrong, "the books are wrong: "+l.shown.check.Error())
	}
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
	if like := misspelt(configs, key); (l.own || len(like) > 0) && !hasDocument(configs, key) && hasDocument(defaults, key) {
		return nil, informer.ErrFallsBack(key, like)
	}
	known, ok := l.parsed[string(document)]
	if !ok {
		known.spec, known.err = config.Parse(document)
		l.parsed[string(document)] = known
	}
	if known.err == nil && known.spec.Document == "" && (defaults.UID != "" || configs.UID != "" || l.had) {
		return nil, config.ErrNoDocument(key)
	}
	if known.err == nil && known.spec.Document != "" {
		l.had, l.own = true, hasDocument(configs, key)
	}
	return known.spec, known.err
}

// misspelt returns the keys of a ConfigMap without the document that may have been meant for it.
func misspelt(m *corev1.ConfigMap, key string) (like []string) {
	for _, k := range slices.Sorted(maps.Keys(m.Data)) {
		if lower := strings.ToLower(k); k != key && (strings.Contains(lower, ".yaml") || strings.Contains(lower, ".yml")) {
			like = append(like, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(m.BinaryData)) {
		if lower := strings.ToLower(k); k != key+".gz" && (strings.Contains(lower, ".yaml") || strings.Contains(lower, ".yml")) {
			like = append(like, k)
		}
	}
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
func (l *life) refused(before shown, err error, about string) (wrong []string) {
	now := l.shown
	if now.spec != before.spec || now.queues != before.queues || now.changed > 0 || now.inForce != before.inForce ||
		now.pages.Source != before.pages.Source || now.pages.Since != before.pages.Since {
		wrong = append(wrong, fmt.Sprintf("refused, and something changed: %d things, document %q after %q", now.changed, now.spec.Document, before.spec.Document))
	}
	if f := now.pages.Failure; f == nil || f.Err.Error() != err.Error() || !f.Corrected.IsZero() || !errors.Is(now.health, f.Err) {
		wrong = append(wrong, fmt.Sprintf("the pages say %+v of %v, and the health check %v", f, err, now.health))
	}
	if now.metric != 0 {
		wrong = append(wrong, "the metric says that the last read succeeded")
	}
	problem := firstOf(err)
	head, waits := "the configuration before stays in force: ", now.waits == before.waits
	if !now.inForce {
		head = "no pod of a queue is scheduled before there is a valid one: "
		waits = now.waits.Code == reasons.ConfigurationInvalid && strings.Contains(now.waits.Text, problem)
	}
	if !waits {
		wrong = append(wrong, fmt.Sprintf("the pod waits for %v, and before for %v", now.waits, before.waits))
	}
	last := ""
	if now.events > 0 {
		last = l.events[now.events-1]
	}
	note, ok := strings.CutPrefix(last, about+": ")
	if !ok || !strings.HasPrefix(note, head+problem) || len(note) > 1024 || !utf8.ValidString(note) || problem == "" {
		wrong = append(wrong, fmt.Sprintf("the last event is %q, want one about %s with %q", last, about, head+problem))
	}
	return wrong
}

// firstOf returns the beginning of an error text.
func firstOf(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	first = strings.ToValidUTF8(first, "\uFFFD")
	return strings.TrimRight(strings.ToValidUTF8(first[:min(len(first), 200)], ""), ". ")
}

// accepted checks the state after a valid document.
func (l *life) accepted(before shown, spec *config.Spec) (wrong []string) {
	now := l.shown
	switch {
	case !now.inForce || now.spec.Checksum != spec.Checksum:
		wrong = append(wrong, fmt.Sprintf("document %q is in force, want %q", now.spec.Document, spec.Document))
	case before.inForce && before.spec.Checksum == spec.Checksum && now.spec != before.spec:
		wrong = append(wrong, "what was in force already was put into force again")
	default:
		if queue := missing(now.queues, spec.Root); queue != "" {
			wrong = append(wrong, "there is no queue "+queue)
		}
	}
	if f := now.pages.Failure; f != nil && f.Corrected.IsZero() || now.health != nil {
		wrong = append(wrong, fmt.Sprintf("the pages say %+v of a valid document, and the health check %v", f, now.health))
	}
	if now.metric != 1 {
		wrong = append(wrong, "the metric says that the last read failed")
	}
	if now.events > before.events || now.waits.Code == reasons.ConfigurationInvalid {
		wrong = append(wrong, fmt.Sprintf("valid, and an event says %q, or the pod waits for %v", l.events[before.events:], now.waits))
	}
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

func unchanged(f *follower) informer.ConfigHandler { return f }

// planted receives documents in place of a follower.
type planted struct {
	*follower
	loaded func(*config.Spec, string)
	failed func(error, string, *corev1.ConfigMap)
}

func (p *planted) Loaded(spec *config.Spec, source string) { p.loaded(spec, source) }
func (p *planted) Failed(err error, source string, about *corev1.ConfigMap) {
	p.failed(err, source, about)
}

// TestWrongFollowersAreFound plants followers with forbidden behaviour.
func TestWrongFollowersAreFound(t *testing.T) {
	metrics.Register()
	other := spec(t, "other")
	for _, test := range []struct {
		name  string
		plant func(p *planted, f *follower)
		want  string // contained in each finding; empty for no finding
	}{
		{"as it is", func(*planted, *follower) {}, ""},
		{"puts something else into force", func(p *planted, f *follower) {
			p.failed = func(err error, source string, about *corev1.ConfigMap) {
				f.store.Configure(other, f.process.Clock.Now())
				f.Failed(err, source, about)
			}
		}, "refused, and something changed"},
		{"forgets a pod", func(p *planted, f *follower) {
			p.failed = func(err error, source string, about *corev1.ConfigMap) {
				f.store.Delete("uid-runs", f.process.Clock.Now())
				f.Failed(err, source, about)
			}
		}, "refused, and something changed"},
		{"says that it is wrong, and not what", func(p *planted, f *follower) {
			p.failed = func(err error, source string, about *corev1.ConfigMap) {
				f.Failed(err, source, nil)
				f.complain(about, reasons.New(reasons.ConfigurationInvalid, "the configuration before stays in force: bad"))
			}
		}, "the last event is"},
		{"tells the pages something else", func(p *planted, f *follower) {
			p.failed = func(err error, source string, about *corev1.ConfigMap) {
				f.Failed(err, source, about)
				f.mu.Lock()
				f.setFailure(errors.New("bad"), source)
				f.mu.Unlock()
			}
		}, "the pages say"},
		{"leaves the metric as it is", func(p *planted, f *follower) {
			p.failed = func(err error, source string, about *corev1.ConfigMap) {
				f.Failed(err, source, about)
				metrics.ConfigLoaded(f.process.Clock.Now())
			}
		}, "the metric says"},
		{"tells pods something else", func(p *planted, f *follower) {
			p.failed = func(err error, source string, about *corev1.ConfigMap) {
				f.Failed(err, source, about)
				f.store.SetNotReady(reasons.New(reasons.Starting, "later"))
			}
		}, "the pod waits for"},
		{"takes the first document only", func(p *planted, f *follower) {
			var first *config.Spec
			p.loaded = func(spec *config.Spec, source string) {
				if first == nil {
					first = spec
				}
				f.Loaded(first, source)
			}
		}, "is in force, want"},
		{"puts the same into force again", func(p *planted, f *follower) {
			p.loaded = func(spec *config.Spec, source string) {
				f.Loaded(spec, source)
				f.store.Configure(spec, f.process.Clock.Now())
			}
		}, "put into force again"},
		{"complains of a valid one", func(p *planted, f *follower) {
			p.loaded = func(spec *config.Spec, source string) {
				f.Loaded(spec, source)
				f.complain(plugintest.Queues(""), reasons.New(reasons.ConfigurationInvalid, "%s", spec.Checksum))
			}
		}, "valid, and an event says"},
		{"leaves out a queue", func(p *planted, f *follower) {
			p.loaded = func(spec *config.Spec, source string) {
				f.Loaded(&config.Spec{Root: config.Default().Root, Rules: spec.Rules, Checksum: spec.Checksum}, source)
			}
		}, "there is no queue"},
	} {
		plant := func(f *follower) informer.ConfigHandler {
			p := &planted{follower: f, loaded: f.Loaded, failed: f.Failed}
			test.plant(p, f)
			return p
		}
		var found []string
		for _, z := range []fuzzed{
			{defaults: plugintest.Document("{vcore: 5}"), configs: brokenDocument}, {defaults: plugintest.Document("{vcore: 5}")},
			{configs: "checksum: x\n" + plugintest.Document("{vcore: 1}")},
		} {
			found = append(found, z.live(t, plant)...)
		}
		if (test.want == "") != (len(found) == 0) || slices.ContainsFunc(found, func(s string) bool { return !strings.Contains(s, test.want) }) {
			t.Errorf("%s: found %q, want %q", test.name, found, test.want)
		}
	}
}
