package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// told is a handler that records its calls, one line each.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (h *told) Loaded(spec *config.Spec, source string) {
	var names []string
	for _, q := range spec.Root.Children {
		names = append(names, q.Name)
	}
	line := fmt.Sprintf("loaded [%s]", strings.Join(names, " "))
	if spec.ClusterID != "" {
		line += " of cluster " + spec.ClusterID
	}
	h.add(line + " from " + source)
}

func (h *told) Failed(err error, source string, about *corev1.ConfigMap) {
	on := "nothing"
	if about != nil {
		on = about.Namespace + "/" + about.Name
	}
	text := err.Error()
	if invalid := new(config.InvalidError); errors.As(err, &invalid) {
		text = fmt.Sprint("invalid in line ", invalid.Problems[0].Line)
	}
	h.add(fmt.Sprintf("failed %q on %s from %s", text, on, source))
}

func (h *told) Unreadable(err error, namespace, configMap string) {
	h.add(fmt.Sprintf("unreadable %s/%s: %v", namespace, configMap, err))
}

func (h *told) add(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
}

func (h *told) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// next polls for one more line and returns it without the name of the source.
func (h *told) next(t *testing.T, seen *int, source string) string {
	t.Helper()
	plugintest.Until(t, "something more is told", func() bool { return len(h.all()) > *seen })
	line, _, ok := strings.Cut(h.all()[*seen], " from "+source)
	expect.That(t, ok, "%q does not name its source, %s", h.all()[*seen], source)
	*seen++
	return line
}

// document has one leaf below root for each name.
func document(names ...string) string {
	b := "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n"
	for _, n := range names {
		b += "    - name: " + n + "\n"
	}
	return b
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "yk", Name: name, UID: types.UID(name)}, Data: data}
}

func queues(text string) map[string]string { return map[string]string{"queues.yaml": text} }

const fromMaps = "ConfigMaps yunikorn-defaults and yunikorn-configs in namespace yk"

// runConfigMaps follows the ConfigMaps of namespace yk until the test ends.
func runConfigMaps(t *testing.T, client *fake.Clientset, h ConfigHandler) {
	t.Helper()
	c := expect.Get(NewConfigMaps(client, "yk", h, klog.Logger{}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	plugintest.Becomes(t, "watches", 2, func() int { return requests(client, "watch", "configmaps") })
}

// TestConfigMapsAreFollowed: what the content of the two ConfigMaps means is shown by the
// tests of pkg/queues/config and by TestNoDocumentIsAMistake.
func TestConfigMapsAreFollowed(t *testing.T) {
	client, h, seen := fake.NewClientset(), &told{}, 0
	runConfigMaps(t, client, h)
	maps := client.CoreV1().ConfigMaps("yk")
	remove := func(name string) { expect.OK(t, maps.Delete(t.Context(), name, metav1.DeleteOptions{})) }
	defaults, configs := config.DefaultsConfigMap, config.QueuesConfigMap
	of := func(name string, leaves ...string) *corev1.ConfigMap {
		return configMap(name, queues(document(leaves...)))
	}
	named := of(defaults, "a", "b")
	named.Data["service.clusterId"] = "east"
	leveled := named.DeepCopy()
	leveled.Data["log.level"] = "-1"
	broken := of(configs, "x", "x")
	relabelled := broken.DeepCopy()
	relabelled.Labels = map[string]string{"changed": "yes"}

	for _, step := range []struct {
		name string
		do   func()
		want string // empty if the handler must not be called
	}{
		{"both are absent", func() {}, "loaded []"},
		{"defaults only", func() { send(t, maps.Create, of(defaults, "a", "b")) }, "loaded [a b]"},
		{"the cluster is named", func() { send(t, maps.Update, named) }, "loaded [a b] of cluster east"},
		{"another option", func() { send(t, maps.Update, leveled) }, ""},
		{"invalid", func() { send(t, maps.Create, broken) }, `failed "invalid in line 7" on yk/yunikorn-configs`},
		{"the same, with a label", func() { send(t, maps.Update, relabelled) }, ""},
		{"repaired", func() { send(t, maps.Update, of(configs, "c")) }, "loaded [c] of cluster east"},
		{"configs are gone", func() { remove(configs) },
			fmt.Sprintf("failed %q on yk/yunikorn-defaults", ErrFallsBack("queues.yaml", nil).Error())},
		{"both are gone", func() { remove(defaults) }, noDocument("queues.yaml", "yunikorn-configs")},
		{"again what it was", func() { send(t, maps.Create, of(configs, "c")) }, "loaded [c]"},
	} {
		step.do()
		if step.want == "" {
			continue // a wrong call appears at the next step
		}
		expect.Same(t, step.name, step.want, h.next(t, &seen, fromMaps))
	}
	rest := h.all()[seen:]
	expect.That(t, len(rest) == 0, "told without need: %q", rest)
}

// TestADocumentThatMoves from yunikorn-defaults to yunikorn-configs has another source, and is not
// given up for the other one later, although it is the same.
func TestADocumentThatMoves(t *testing.T) {
	defaults := configMap(config.DefaultsConfigMap, queues(document("a")))
	options := configMap(config.QueuesConfigMap, map[string]string{"log.level": "x"})
	moved := configMap(config.QueuesConfigMap, queues(document("a")))
	for _, before := range []*corev1.ConfigMap{options, {}} {
		h := &told{}
		c := expect.Get(NewConfigMaps(fake.NewClientset(), "yk", h, klog.Background()))(t)
		for _, configs := range []*corev1.ConfigMap{before, moved, moved, options} {
			c.Read(defaults, configs)
		}
		want := []string{
			"loaded [a] from " + fromMaps,
			fmt.Sprintf("failed %q on yk/yunikorn-configs from %s", ErrFallsBack("queues.yaml", nil).Error(), fromMaps),
		}
		expect.Same(t, "after the first", want, h.all()[1:])
	}
}

func TestConfigMapsReadsNoOthers(t *testing.T) {
	client, h, seen := fake.NewClientset(), &told{}, 0
	runConfigMaps(t, client, h)
	h.next(t, &seen, fromMaps)
	var got []string
	for _, a := range client.Actions() {
		options := a.(interface{ GetListOptions() metav1.ListOptions }).GetListOptions()
		got = append(got, fmt.Sprint(a.GetVerb(), " in ", a.GetNamespace(), ": ", options.FieldSelector))
	}
	slices.Sort(got)
	want := []string{
		"list in yk: metadata.name=yunikorn-configs", "list in yk: metadata.name=yunikorn-defaults",
		"watch in yk: metadata.name=yunikorn-configs", "watch in yk: metadata.name=yunikorn-defaults",
	}
	expect.Same(t, "requests", want, got)
}

func TestConfigMapsNamesKeysWithoutEffect(t *testing.T) {
	logger, log := logged(t)
	c := expect.Get(NewConfigMaps(fake.NewClientset(), "yk", &told{}, logger))(t)
	const first = `keys="log.level, queue.yaml, service.schedulingInterval"`
	ignored := func(level string) map[string]string {
		return map[string]string{"service.schedulingInterval": "x", "log.level": level, "queue.yaml": "x"}
	}
	for i, step := range []struct {
		name  string
		data  map[string]string // beside the document
		told  int
		named string
	}{
		{"three keys", ignored("x"), 1, first},
		{"the same keys", ignored("y"), 1, first},
		{"another key", map[string]string{"other": "x"}, 2, `keys="other"`},
		{"nothing to tell", map[string]string{}, 2, first},
	} {
		step.data["queues.yaml"] = document(fmt.Sprint("q", i))
		c.Read(configMap(config.DefaultsConfigMap, nil), configMap(config.QueuesConfigMap, step.data))
		n := strings.Count(log(), "have no effect")
		expect.That(t, n == step.told && strings.Contains(log(), step.named),
			"%s: told %d times, want %d times, with %s:\n%s", step.name, n, step.told, step.named, log())
	}
}

func TestIgnoredKeys(t *testing.T) {
	for _, c := range []struct {
		name              string
		defaults, configs config.Source
		want              []string
	}{
		{"nothing", config.Source{}, config.Source{}, nil},
		{"the document", config.Source{Data: queues("")}, config.Source{BinaryData: map[string][]byte{"queues.yaml.gz": expect.Gzipped("")}}, nil},
		{"another policy group", config.Source{Data: map[string]string{"service.policyGroup": "mine", "mine.yaml": "", "queues.yaml": ""}},
			config.Source{BinaryData: map[string][]byte{"mine.yaml.gz": expect.Gzipped("")}}, []string{"queues.yaml"}},
		{"the name of the cluster", config.Source{Data: map[string]string{"service.clusterId": "east", "service.clusterid": ""}}, config.Source{}, []string{"service.clusterid"}},
		{"sorted, each once", config.Source{Data: map[string]string{"z": "", "log.level": ""}},
			config.Source{Data: map[string]string{"log.level": ""}, BinaryData: map[string][]byte{"b": nil}}, []string{"b", "log.level", "z"}},
		{"the document packed and not packed", config.Source{}, config.Source{Data: queues(""), BinaryData: map[string][]byte{"queues.yaml.gz": expect.Gzipped("")}},
			[]string{"queues.yaml (key queues.yaml.gz takes its place)"}},
		{"a packed name for what is not packed", config.Source{Data: map[string]string{"queues.yaml.gz": ""}},
			config.Source{BinaryData: map[string][]byte{"queues.yaml.gz": expect.Gzipped("")}}, []string{"queues.yaml.gz"}},
	} {
		_, options, err := config.FromConfigMaps(c.defaults, c.configs)
		expect.OK(t, err)
		expect.Same(t, c.name, c.want, ignoredKeys(options, c.defaults, c.configs))
	}
}

func TestConfigMapsSaysWhatIsMissingToReadThem(t *testing.T) {
	group := schema.GroupResource{Resource: "configmaps"}
	for _, c := range []struct {
		err  error
		tell bool
	}{
		{apierrors.NewForbidden(group, "yunikorn-configs", errors.New("no role")), true},
		{errors.New("connection refused"), true},
		{apierrors.NewResourceExpired("too old"), false}, {io.EOF, false}, {io.ErrUnexpectedEOF, false},
	} {
		h := &told{}
		logger, log := logged(t)
		r := cache.NewReflectorWithOptions(&cache.ListWatch{}, &corev1.ConfigMap{}, cache.NewStore(cache.MetaNamespaceKeyFunc),
			cache.ReflectorOptions{Name: "test"})
		watchErrors(h, logger, "yk", "yunikorn-configs")(t.Context(), r, c.err)
		logged := strings.Contains(log(), "list and watch ConfigMaps") &&
			strings.Contains(log(), `namespace="yk" configMap="yunikorn-configs"`)
		expect.Same(t, fmt.Sprintf("%v: logged", c.err), c.tell, logged)
		var want []string
		if c.tell {
			want = []string{"unreadable yk/yunikorn-configs: " + c.err.Error()}
		}
		expect.Same(t, fmt.Sprintf("%v: the handler", c.err), want, h.all())
	}
}

// TestConfigFile uses the clock of its synctest bubble; only the file is real.
func TestConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queues.yaml")
	write := func(text string) { expect.OK(t, os.WriteFile(path, []byte(text), 0o600)) }
	notThere := `failed "open ` + path + `: no such file or directory" on nothing`
	synctest.Test(t, func(t *testing.T) {
		h, seen := &told{}, 0
		go NewConfigFile(path, time.Second, h).Run(t.Context())
		synctest.Wait()
		for _, step := range []struct {
			name string
			do   func()
			want []string
		}{
			{"absent at first", func() {}, []string{notThere}},
			{"still absent", func() {}, nil},
			{"appears", func() { write(document("a")) }, []string{"loaded [a]"}},
			{"unchanged", func() {}, nil},
			{"written again", func() { write(document("a")) }, nil},
			{"changes", func() { write(document("a", "b")) }, []string{"loaded [a b]"}},
			{"invalid", func() { write("partitions: [") }, []string{`failed "invalid in line 1" on nothing`}},
			{"still invalid", func() {}, nil},
			{"disappears", func() { expect.OK(t, os.Remove(path)) }, []string{notThere}},
			{"still gone", func() {}, nil},
			{"is a directory now", func() { expect.OK(t, os.Mkdir(path, 0o700)) },
				[]string{`failed "read ` + path + `: is a directory" on nothing`}},
			{"comes back", func() { expect.OK(t, os.Remove(path)); write(document("a", "b")) }, []string{"loaded [a b]"}},
			{"empty", func() { write("# nothing\n") }, []string{`failed "` + config.ErrNoDocument("").Error() + `" on nothing`}},
			{"empty in another way", func() { write("") }, []string{`failed "` + config.ErrNoDocument("").Error() + `" on nothing`}},
		} {
			step.do()
			time.Sleep(time.Second)
			synctest.Wait()
			var got []string
			for range h.all()[seen:] {
				got = append(got, h.next(t, &seen, "file "+path))
			}
			expect.Same(t, step.name, step.want, got)
		}
	})
}

// noDocument is the expected line if there is no document under the key.
func noDocument(key, about string) string {
	return fmt.Sprintf("failed %q on yk/%s", config.ErrNoDocument(key).Error(), about)
}

// TestNoDocumentIsAMistake: if the document is removed in any way, the configuration in
// force stays, also if ConfigMap yunikorn-defaults has another one. The built-in configuration is used only if there is no ConfigMap from the
// start.
func TestNoDocumentIsAMistake(t *testing.T) {
	absent := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "yk", Name: name}}
	}
	configs := func(data map[string]string) *corev1.ConfigMap { return configMap(config.QueuesConfigMap, data) }
	withDefaults := configMap(config.DefaultsConfigMap, queues(document("loose")))
	fallsBack := func(about string, like ...string) string {
		return fmt.Sprintf("failed %q on yk/%s", ErrFallsBack("queues.yaml", like).Error(), about)
	}
	packed := configs(nil)
	packed.BinaryData = map[string][]byte{"queues.yaml.gz": expect.Gzipped(document("b"))}
	const (
		mapName      = config.QueuesConfigMap
		fromDefaults = " from " + fromMaps + "; the document is that of yunikorn-defaults, because yunikorn-configs has no key queues.yaml"
	)
	for _, c := range []struct {
		name     string
		defaults *corev1.ConfigMap // absent if nil
		configs  *corev1.ConfigMap
		after    string // if a document was in force
		start    string // if this is the first read
	}{
		{"the key is written in another way", nil, configs(map[string]string{"Queues.yaml": document("a")}), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"another policyGroup", nil, configs(map[string]string{"service.policyGroup": "other", "queues.yaml": document("a")}), noDocument("other.yaml", mapName), noDocument("other.yaml", mapName)},
		{"emptied", nil, configs(nil), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"an empty value", nil, configs(queues("")), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"comments only", nil, configs(queues("# nothing\n\n# more\n")), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"options only", nil, configs(map[string]string{"service.clusterId": "x"}), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"deleted", nil, absent(config.QueuesConfigMap), noDocument("queues.yaml", mapName), "loaded []"},
		{"an explicit one without queues", nil, configs(queues(config.DefaultDocument)), "loaded []", "loaded []"},
		{"the key is written in another way, and there are defaults", withDefaults, configs(map[string]string{"Queues.yaml": document("a")}), fallsBack(mapName, "Queues.yaml"), fallsBack(mapName, "Queues.yaml")},
		{"the key is cut short, and there are defaults", withDefaults, configs(map[string]string{"queues.yml": document("a"), "service.clusterId": "x"}), fallsBack(mapName, "queues.yml"), fallsBack(mapName, "queues.yml")},
		{"options only, and there are defaults", withDefaults, configs(map[string]string{"log.level": "x"}), fallsBack(mapName), "loaded [loose]" + fromDefaults},
		{"deleted, and there are defaults", withDefaults, absent(config.QueuesConfigMap), fallsBack(config.DefaultsConfigMap), "loaded [loose]"},
		{"emptied, and there are defaults", withDefaults, configs(queues("")), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"packed, and there are defaults", withDefaults, packed, "loaded [b]", "loaded [b]"},
		{"deleted, and the defaults are the same", configMap(config.DefaultsConfigMap, queues(document("a"))), absent(config.QueuesConfigMap), fallsBack(config.DefaultsConfigMap), "loaded [a]"},
		{"replaced by the defaults' document", withDefaults, configs(queues(document("loose"))), "loaded [loose]", "loaded [loose]"},
	} {
		for _, after := range []bool{true, false} {
			h := &told{}
			m := expect.Get(NewConfigMaps(fake.NewClientset(), "yk", h, klog.Background()))(t)
			read := func(defaults, configs *corev1.ConfigMap) {
				m.Read(cmp.Or(defaults, absent(config.DefaultsConfigMap)), configs)
			}
			want := []string{c.start}
			if after {
				read(nil, configs(queues(document("a"))))
				want = []string{"loaded [a]", c.after, "loaded [a]"}
			}
			read(c.defaults, c.configs)
			if after { // the document comes back
				read(nil, configs(queues(document("a"))))
			}
			for i := range want {
				if !strings.Contains(want[i], fromDefaults) {
					want[i] += " from " + fromMaps
				}
			}
			expect.Same(t, fmt.Sprintf("%s, after a document: %t", c.name, after), want, h.all())
		}
	}
}
