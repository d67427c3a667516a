package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// patience is how long a test waits for expected events. It is long, because only failing
// tests use it up.
const patience = 90 * time.Second

// cleaningUp is how long all pods of a test may take to go. Tests of very many pods have more.
var cleaningUp = patience

// calm is how long a test checks that something does not happen, after the scheduler has
// shown that it knows the cause.
const calm = 700 * time.Millisecond

// document is the key of the ConfigMap with the queues.
const document = "queues.yaml"

// label marks all objects of one test.
const label = "integration/test"

// profile is the scheduler name of pods in queues.
const profile = "yunikorn"

// env is one test with a scheduler of its own.
type env struct {
	*testing.T
	id       string // short and unique; names and labels begin with it
	ns       string // where pods are created
	settings settings
	rest     string // address of the REST interface
	process  *localcluster.Process
	nodePool string
}

// settings say how the scheduler of a test is started.
type settings struct {
	shipped []byte // a shipped configuration; nil means the one for a second scheduler
	// configNamespace has the ConfigMap; empty means a new namespace for the test.
	configNamespace string
	// launch is how to start it: Name, Kubeconfig, LeaderElection, Flags, Arguments, Args and Env are honoured.
	// With Flags, the scheduler learns configNamespace only from these and Env.
	launch localcluster.SchedulerOptions
	// refused is true if RBAC forbids some requests of the scheduler of this test.
	refused bool
}

var tests atomic.Int32

// setup starts a scheduler that reads the queues from a ConfigMap with this
// text; with an empty text there is no ConfigMap.
func setup(t *testing.T, queues string, options ...func(*settings)) *env {
	t.Helper()
	id := fmt.Sprintf("t%02d", tests.Add(1))
	e := &env{T: t, id: id, ns: id, nodePool: shared}
	for _, o := range options {
		o(&e.settings)
	}
	t.Logf("scheduler-%s, namespaces %s*", id, id)
	e.namespace(e.ns, nil)
	if e.settings.configNamespace == "" {
		e.namespace(e.configNamespace(), nil)
		e.ok(suite.cluster.GrantConfigNamespace(t.Context(), e.configNamespace()))
	}
	if queues != "" {
		e.configure(queues)
	}
	e.rest = expect.Get(localcluster.FreeAddress())(t)
	t.Cleanup(e.tearDown)
	e.start()
	return e
}

func arg(plugin, name string, value any) func(*settings) {
	return func(s *settings) {
		s.launch.Arguments = append(s.launch.Arguments, localcluster.Argument{Plugin: plugin, Name: name, Value: value})
	}
}

func queueSort(name string, value any) func(*settings)  { return arg("QueueSort", name, value) }
func preemption(name string, value any) func(*settings) { return arg("QueuePreemption", name, value) }

// run runs a part of the test under its own name, with the same scheduler.
func (e *env) run(name string, f func(*env)) {
	e.Helper()
	e.T.Run(name, func(t *testing.T) {
		part := *e
		part.T = t
		f(&part)
	})
}

// succeeds repeats a call until it returns no error.
func succeeds(t testing.TB, what string, call func() error) {
	t.Helper()
	eventually(t, patience, what, func() (bool, string) {
		err := call()
		return err == nil, fmt.Sprint(err)
	})
}

func (e *env) ok(err error) {
	e.Helper()
	expect.OK(e, err)
}

func (e *env) configNamespace() string {
	if name := e.settings.configNamespace; name != "" {
		return name
	}
	return e.id + "-config"
}

// namespace makes a namespace with annotations.
func (e *env) namespace(name string, annotations map[string]string) {
	e.Helper()
	expect.Get(suite.client.CoreV1().Namespaces().Create(e.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: e.id}, Annotations: annotations},
	}, metav1.CreateOptions{}))(e)
	// The controller makes the service account a moment later, and pods cannot be created before.
	succeeds(e, "namespace "+name+" has its service account", func() error {
		_, err := suite.client.CoreV1().ServiceAccounts(name).Get(e.Context(), "default", metav1.GetOptions{})
		return err
	})
}

func (e *env) configure(queues string) {
	e.Helper()
	m := &corev1.ConfigMap{Data: map[string]string{document: queues}}
	m.Name, m.Namespace = config.QueuesConfigMap, e.configNamespace()
	maps := suite.client.CoreV1().ConfigMaps(m.Namespace)
	_, err := maps.Update(e.Context(), m, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(e.Context(), m, metav1.CreateOptions{})
	}
	e.ok(err)
}

// reloadSuccess is the metric on which an administrator alerts.
const reloadSuccess = "paddock_config_last_reload_success"

// belowRoot is a configuration with these queues, a list as YAML has it between brackets.
func belowRoot(queues string) string {
	return `partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: [` + queues + `]}]}]`
}

// oneLeaf is a configuration with leaf root.a of a max of so many cores.
func oneLeaf(most string) string {
	return belowRoot("{name: a, resources: {max: {vcore: " + most + "}}}")
}

// owedQueues is queue owed with a guarantee of so many cores, which preempts after a delay, and
// queue borrows.
func owedQueues(cores int, delay time.Duration) string {
	return belowRoot(fmt.Sprintf(`{name: owed, resources: {guaranteed: {vcore: %d}}, properties: {preemption.delay: %v}},
 {name: borrows, properties: {preemption.delay: %[2]v}}`, cores, delay))
}

// start starts the scheduler, also after a kill. It runs as system:kube-scheduler unless
// the settings say otherwise.
func (e *env) start() {
	e.Helper()
	o := e.settings.launch
	o.Name = cmp.Or(o.Name, "scheduler-"+e.id)
	o.Binary, o.Config = suite.scheduler, e.settings.shipped
	if o.Config == nil {
		o.Config = manifests.SecondScheduler
	}
	places := []localcluster.Argument{{Plugin: "QueueSort", Name: "restAddress", Value: e.rest}}
	if o.Flags == nil {
		o.Args = append([]string{"--v=2"}, o.Args...)
		places = append(places, localcluster.Argument{Plugin: "QueueSort", Name: "configNamespace", Value: e.configNamespace()})
	}
	o.Arguments = append(places, o.Arguments...)
	var err error
	e.process, err = suite.cluster.StartScheduler(e.Context(), o)
	var died *localcluster.DiedError
	if errors.As(err, &died) {
		e.Log(died.Tail)
	}
	e.ok(err)
}

func (e *env) kill() {
	e.Helper()
	e.ok(e.process.Kill())
}

// useNodes gives the test nodes of its own; from now on its pods run there.
func (e *env) useNodes(n int, spec localcluster.NodeSpec) []string {
	e.Helper()
	e.nodePool = e.id
	return e.addNodes(n, spec)
}

// apart returns a part of the test with nodes of its own.
func (e *env) apart(name string, n int, spec localcluster.NodeSpec) *env {
	e.Helper()
	part := *e
	part.nodePool = e.id + "-" + name
	part.addNodes(n, spec)
	return &part
}

func (e *env) addNodes(n int, spec localcluster.NodeSpec) []string {
	e.Helper()
	spec.NamePrefix, spec.Labels = e.nodePool+"-node", map[string]string{pool: e.nodePool, label: e.id}
	return expect.Get(suite.cluster.AddNodes(e.Context(), spec, n))(e)
}

// tearDown runs the checks of every test and cleans up.
func (e *env) tearDown() {
	if e.Failed() {
		e.dump()
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleaningUp)
	defer cancel()
	alive := e.process != nil && e.process.Running()
	e.checkNodes(ctx)
	e.checkEvents(ctx)
	e.removePods(ctx)
	if e.process != nil {
		expect.Holds(e, e.process.Stop())
		e.checkLog(alive)
	}
	expect.Holds(e, e.removeRest(ctx))
}

// checkNodes finds pods that a node rejected, which means that the scheduler
// overcommitted it. The node agent counts since its start.
func (e *env) checkNodes(ctx context.Context) {
	pods, err := e.listPods(ctx)
	expect.Holds(e, err)
	for i := range pods {
		p := &pods[i] // one that is evicted fails at its end, too
		expect.That(e, p.Status.Phase != corev1.PodFailed || p.DeletionTimestamp != nil,
			"pod %s was bound to %s and failed there: %v", p.Name, p.Spec.NodeName, &p.Status)
	}
	var stats nodeagent.Stats
	expect.Holds(e, decode(ctx, suite.cluster.Process(localcluster.Nodes).URL()+"/stats", &stats))
	expect.That(e, len(stats.Rejections) == 0 && stats.OvercommittedNodes == 0,
		"nodes refused pods: %v; %d nodes are overcommitted", stats.Rejections, stats.OvercommittedNodes)
}

// checkEvents finds sentences about pods of queues that tell users nothing.
func (e *env) checkEvents(ctx context.Context) {
	step := regexp.MustCompile("claims to deallocate|rejection in ")
	list, err := suite.client.CoreV1().Events(e.ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
	if err != nil {
		e.Error(err)
		return
	}
	for i := range list.Items {
		v := &list.Items[i]
		expect.That(e, v.ReportingController != profile || !step.MatchString(v.Message),
			"pod %s is told of a step of the scheduler: %s", v.InvolvedObject.Name, v.Message)
	}
}

// checkLog finds log lines that no scheduler may write.
func (e *env) checkLog(alive bool) {
	if !alive {
		e.Errorf("the scheduler has ended by itself; the end of its log:\n%s", e.process.Tail(40))
	}
	for _, bad := range []string{"forbidden", "panic", "fatal error", "DATA RACE"} {
		for _, line := range e.logLines(bad) {
			if bad == "forbidden" && (e.settings.refused || strings.Contains(line, "because it is being terminated")) {
				continue // expected, or a namespace of another test is being deleted
			}
			e.Errorf("the log of the scheduler has %q: %s", bad, line)
			break
		}
	}
}

// removeRest removes namespaces and nodes of the test, without waiting.
func (e *env) removeRest(ctx context.Context) error {
	its := metav1.ListOptions{LabelSelector: label + "=" + e.id}
	list, err := suite.client.CoreV1().Namespaces().List(ctx, its)
	if err != nil {
		return err
	}
	errs := []error{suite.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, its)}
	for i := range list.Items {
		errs = append(errs, suite.client.CoreV1().Namespaces().Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}))
	}
	return errors.Join(errs...)
}

// dump prints what helps to find the cause of a failure.
func (e *env) dump() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	pods, err := e.listPods(ctx)
	if err != nil {
		e.Log(err)
	}
	for i := range pods {
		e.Logf("pod %s", describe(ctx, &pods[i]))
	}
	if tree, err := e.readQueues(ctx); err != nil {
		e.Log(err)
	} else {
		var lines []string
		show(tree, &lines)
		e.Logf("queues:\n%s", strings.Join(lines, "\n"))
	}
	if e.process != nil {
		e.Logf("the end of %s, without what every start has:\n%s", e.process.Log(), interesting(e.process.Tail(400)))
	}
}

// interesting returns the lines of a log that are about pods and queues.
func interesting(log string) string {
	lines := slices.DeleteFunc(strings.Split(log, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "W") && !strings.HasPrefix(line, "E") &&
			!strings.Contains(line, "schedule_one.go") && !strings.Contains(line, `logger="queues"`)
	})
	return strings.Join(lines, "\n")
}
