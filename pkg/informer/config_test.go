package informer

import (
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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

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
	plugintest.Eventually(t, func() error {
		if len(h.all()) <= *seen {
			return errors.New("nothing more is told")
		}
		return nil
	})
	line, _, ok := strings.Cut(h.all()[*seen], " from "+source)
	if !ok {
		t.Errorf("%q does not name its source, %s", h.all()[*seen], source)
	}
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
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "yk", Name: name, UID: types.UID(name)}, Data: data,
	}
}

func queues(text string) map[string]string { return map[string]string{"queues.yaml": text} }

const fromMaps = "ConfigMaps yunikorn-defaults and yunikorn-configs in namespace yk"

// runConfigMaps follows the ConfigMaps of namespace yk until the test ends.
func runConfigMaps(t *testing.T, client *fake.Clientset, h ConfigHandler) (c *ConfigMaps, log func() string) {
	t.Helper()
	logger, log := logged(t)
	c = expect.Get(NewConfigMaps(client, "yk", h, logger))(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	plugintest.Eventually(t, func() error {
		if requests(client, "watch", "configmaps") < 2 {
			return errors.New("not watched yet")
		}
		return nil
	})
	return c, log
}

func TestConfigMapsAreMergedAndFollowed(t *testing.T) {
	client, h, seen := fake.NewClientset(), &told{}, 0
	c, _ := runConfigMaps(t, client, h)
	ctx, maps := t.Context(), client.CoreV1().ConfigMaps("yk")
	create := func(m *corev1.ConfigMap) { expect.Get(maps.Create(ctx, m, metav1.CreateOptions{}))(t) }
	update := func(m *corev1.ConfigMap) { expect.Get(maps.Update(ctx, m, metav1.UpdateOptions{}))(t) }
	remove := func(name string) { expect.OK(t, maps.Delete(ctx, name, metav1.DeleteOptions{})) }
	binary := func(name string, data []byte) *corev1.ConfigMap {
		m := configMap(name, nil)
		m.BinaryData = map[string][]byte{"queues.yaml.gz": data}
		return m
	}
	named := func(name, cluster string, data map[string]string) *corev1.ConfigMap {
		data["service.clusterId"] = cluster
		return configMap(name, data)
	}
	defaults, configs := config.DefaultsConfigMap, config.QueuesConfigMap
	broken := document("x") + "    - name: x\n" // the same name twice
	relabelled := configMap(configs, queues(broken))
	relabelled.Labels = map[string]string{"changed": "yes"}

	for _, step := range []struct {
		name string
		do   func()
		want string // empty if the handler must not be called
	}{
		{"both are absent", func() {}, "loaded []"},
		{"defaults only", func() { create(configMap(defaults, queues(document("a", "b")))) }, "loaded [a b]"},
		{"the cluster is named", func() { update(named(defaults, "east", queues(document("a", "b")))) }, "loaded [a b] of cluster east"},
		{"named by both", func() { create(named(configs, "west", map[string]string{"log.level": "-1"})) }, "loaded [a b] of cluster west"},
		{"and no longer by configs", func() { update(configMap(configs, map[string]string{"log.level": "-1"})) }, "loaded [a b] of cluster east"},
		{"another option", func() { update(configMap(configs, map[string]string{"log.level": "0"})) }, ""},
		{"by none", func() { update(configMap(defaults, queues(document("a", "b")))) }, "loaded [a b]"},
		{"configs go before defaults", func() { update(configMap(configs, queues(document("c")))) }, "loaded [c]"},
		{"another ConfigMap", func() { create(configMap("queues", queues(document("wrong")))) }, ""},
		{"invalid", func() { update(configMap(configs, queues(broken))) },
			`failed "invalid in line 7" on yk/yunikorn-configs`},
		{"the same, with a label", func() { update(relabelled) }, ""},
		{"not YAML", func() { update(configMap(configs, queues("partitions: ["))) },
			`failed "invalid in line 1" on yk/yunikorn-configs`},
		{"repaired", func() { update(configMap(configs, queues(document("c", "d")))) }, "loaded [c d]"},
		{"compressed", func() { update(binary(configs, expect.Gzipped(document("e")))) }, "loaded [e]"},
		{"broken compression", func() { update(binary(configs, []byte("no gzip"))) },
			`failed "configmap yunikorn-configs, binaryData key queues.yaml.gz: not a gzip file: unexpected EOF" on yk/yunikorn-configs`},
		{"broken, and defaults change", func() {
			update(configMap(defaults, queues(document("f"))))
			plugintest.Eventually(t, func() error { // the two ConfigMaps are watched independently
				if c.get(0, defaults).Data["queues.yaml"] != document("f") {
					return errors.New("not seen yet")
				}
				return nil
			})
		}, ""},
		{"configs are gone", func() { remove(configs) },
			fmt.Sprintf("failed %q on yk/yunikorn-defaults", ErrFallsBack("queues.yaml", nil).Error())},
		{"invalid defaults", func() { update(binary(defaults, []byte("no gzip"))) },
			`failed "configmap yunikorn-defaults, binaryData key queues.yaml.gz: not a gzip file: unexpected EOF" on yk/yunikorn-defaults`},
		{"both are gone", func() { remove(defaults) }, noDocument("queues.yaml", "yunikorn-configs")},
		{"one without the key", func() { create(configMap(defaults, map[string]string{"Queues.yaml": document("a")})) }, ""},
		{"again what it was", func() { create(configMap(configs, queues(document("e")))) }, "loaded [e]"},
	} {
		step.do()
		if step.want == "" {
			continue // a wrong call appears at the next step
		}
		if got := h.next(t, &seen, fromMaps); got != step.want {
			t.Fatalf("%s:\ngot  %s\nwant %s", step.name, got, step.want)
		}
	}
	if rest := h.all()[seen:]; len(rest) > 0 {
		t.Errorf("told without need: %q", rest)
	}
}

func TestConfigMapsReadsNoOthers(t *testing.T) {
	client, h, seen := fake.NewClientset(), &told{}, 0
	runConfigMaps(t, client, h)
	h.next(t, &seen, fromMaps)
	var got []string
	for _, a := range client.Actions() {
		var field fields.Selector
		switch a := a.(type) {
		case clienttesting.ListAction:
			field = a.GetListRestrictions().Fields
		case clienttesting.WatchAction:
			field = a.GetWatchRestrictions().Fields
		default:
			t.Fatalf("unexpected request %v", a)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", a.GetVerb(), a.GetResource().Resource, a.GetNamespace(), field))
	}
	slices.Sort(got)
	want := []string{
		"list configmaps yk metadata.name=yunikorn-configs", "list configmaps yk metadata.name=yunikorn-defaults",
		"watch configmaps yk metadata.name=yunikorn-configs", "watch configmaps yk metadata.name=yunikorn-defaults",
	}
	expect.Same(t, "requests", want, got)
}

func TestConfigMapsNamesKeysWithoutEffect(t *testing.T) {
	options := func(extra ...string) map[string]string {
		m := queues(document("a"))
		for _, key := range extra {
			m[key] = "x"
		}
		return m
	}
	client, h, seen := fake.NewClientset(configMap(config.QueuesConfigMap, options("service.schedulingInterval", "log.level", "queue.yaml"))), &told{}, 0
	_, log := runConfigMaps(t, client, h)
	h.next(t, &seen, fromMaps)
	const first = `keys="log.level, queue.yaml, service.schedulingInterval"`
	if !strings.Contains(log(), first) || !strings.Contains(log(), "have no effect") {
		t.Fatalf("the log does not name the keys:\n%s", log())
	}
	update := func(data map[string]string) {
		t.Helper()
		expect.Get(client.CoreV1().ConfigMaps("yk").Update(t.Context(), configMap(config.QueuesConfigMap, data), metav1.UpdateOptions{}))(t)
	}
	changed := options("service.schedulingInterval", "log.level", "queue.yaml")
	changed["queues.yaml"], changed["log.level"] = document("a", "b"), "y"
	update(changed)
	h.next(t, &seen, fromMaps)
	if n := strings.Count(log(), "have no effect"); n != 1 {
		t.Errorf("told %d times of the same keys, want once:\n%s", n, log())
	}
	update(map[string]string{"queues.yaml": document("c"), "other": "x"})
	h.next(t, &seen, fromMaps)
	if !strings.Contains(log(), `keys="other"`) {
		t.Errorf("the log does not name the new key:\n%s", log())
	}
	update(options())
	h.next(t, &seen, fromMaps)
	if n := strings.Count(log(), "have no effect"); n != 2 {
		t.Errorf("told %d times, want twice; there is nothing to tell where every key counts:\n%s", n, log())
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
		{apierrors.NewResourceExpired("too old"), false},
		{io.EOF, false},
		{io.ErrUnexpectedEOF, false},
	} {
		h := &told{}
		logger, log := logged(t)
		r := cache.NewReflectorWithOptions(&cache.ListWatch{}, &corev1.ConfigMap{}, cache.NewStore(cache.MetaNamespaceKeyFunc),
			cache.ReflectorOptions{Name: "test"})
		watchErrors(h, logger, "yk", "yunikorn-configs")(t.Context(), r, c.err)
		told := strings.Contains(log(), "list and watch ConfigMaps") && strings.Contains(log(), `namespace="yk" configMap="yunikorn-configs"`)
		if told != c.tell {
			t.Errorf("%v: told = %v, want %v\n%s", c.err, told, c.tell, log())
		}
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
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h, seen := &told{}, 0
		done := make(chan struct{})
		go func() { defer close(done); NewConfigFile(path, time.Second, h).Run(ctx) }()
		synctest.Wait()
		for _, step := range []struct {
			name string
			do   func()
			want []string
		}{
			{"absent at first", func() {}, []string{`failed "open ` + path + `: no such file or directory" on nothing`}},
			{"still absent", func() {}, nil},
			{"appears", func() { write(document("a")) }, []string{"loaded [a]"}},
			{"unchanged", func() {}, nil},
			{"written again", func() { write(document("a")) }, nil},
			{"changes", func() { write(document("a", "b")) }, []string{"loaded [a b]"}},
			{"invalid", func() { write("partitions: [") },
				[]string{`failed "invalid in line 1" on nothing`}},
			{"still invalid", func() {}, nil},
			{"disappears", func() { expect.OK(t, os.Remove(path)) },
				[]string{`failed "open ` + path + `: no such file or directory" on nothing`}},
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
		cancel()
		<-done
	})
}
