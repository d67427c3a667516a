package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// nest makes values of a path like "image.tag".
func nest(path string, value any) map[string]any {
	head, rest, deeper := strings.Cut(path, ".")
	if deeper {
		return map[string]any{head: nest(rest, value)}
	}
	return map[string]any{head: value}
}

// Values that do not exist, or cannot be meant, are refused by name.
func TestValuesRefused(t *testing.T) {
	for _, c := range []struct {
		path  string
		value any
		says  string
	}{
		{"replicas", 3, "replicas"},
		{"image.repo", "x", "repo"},
		{"image.repository", "", "/image/repository"},
		{"image.repository", "registry.example.com/A Scheduler", "/image/repository"},
		{"image.tag", "1 0", "/image/tag"},
		{"image.digest", "sha256:abc", "/image/digest"},
		{"image.pullPolicy", "Sometimes", "/image/pullPolicy"},
		{"replicaCount", "two", "/replicaCount"},
		{"replicaCount", -1, "/replicaCount"},
		{"extraArgs", []any{"v=2"}, "/extraArgs/0"},
		{"service.port", 80, "/service/port"},
		{"service.port", 10259, "/service/port"},
		{"goMemoryLimit", "3Gi", "/goMemoryLimit"},
		{"goMemoryLimit", "100%", "/goMemoryLimit"},
		{"resources", map[string]any{"limits": map[string]any{"memory": "4E"}}, "goMemoryLimit is 80% of resources.limits.memory"},
		{"extraArgs", []any{"--v=2", "--config=/mine.yaml"}, "extraArgs has --config=/mine.yaml, which the chart sets itself: use schedulerConfig"},
		{"extraArgs", []any{"--leader-elect"}, "use schedulerConfig or leaderElection"},
		{"priorityClassName", "Very High", "/priorityClassName"},
		{"rest.tlsSecret", "no name", "/rest/tlsSecret"},
		{"daemonSetProfile", "My Agents", "/daemonSetProfile"},
		{"daemonSetProfile", "default-scheduler", "in place of kube-scheduler use manifests/overlays/replace-default-daemonsets"},
		{"daemonSetProfile", "yunikorn", "daemonSetProfile is yunikorn, the profile with queues"},
		{"networkPolicy.allow", true, "allow"},
		{"networkPolicy.restFrom", "monitoring", "/networkPolicy/restFrom"},
		{"networkPolicy.restFrom", []any{map[string]any{}}, "/networkPolicy/restFrom/0"}, // the API server refuses it, too
		{"networkPolicy.restFrom", []any{map[string]any{"namespace": "monitoring"}}, "/networkPolicy/restFrom/0"},
		{"networkPolicy", map[string]any{"enabled": false, "restFrom": []any{map[string]any{"podSelector": map[string]any{}}}}, "set enabled true or leave restFrom empty"},
		{"podLabels", map[string]any{"app.kubernetes.io/component": "web"}, "choose another label"},
		{"disruptionBudget.maxUnavailable", "150%", "/disruptionBudget/maxUnavailable"},
		{"disruptionBudget.maxUnavailable", 0, "/disruptionBudget/maxUnavailable"},
		{"admission.setSchedulerName", "v1alpha1", "/admission/setSchedulerName"},
		{"yunikornDefaults", map[string]any{"queues.yaml": map[string]any{}}, "/yunikornDefaults/queues.yaml"},
		{"rest.hosts", []any{"https://queues"}, "/rest/hosts/0"},
		{"daemonSetNamespaces", []any{"No Name"}, "/daemonSetNamespaces/0"},
		{"daemonSetOwner", "claimed", "/daemonSetOwner"},
		{"maxDynamicQueues", -1, "/maxDynamicQueues"},
		{"maxDynamicQueuesPerNamespace", "many", "/maxDynamicQueuesPerNamespace"},
		{"leaderElection", false, "set leaderElection true or replicaCount 1"}, // with two replicas
	} {
		t.Run(fmt.Sprintf("%s %v", c.path, c.value), func(t *testing.T) {
			expect.Refused(Chart(chartDir, standard(nest(c.path, c.value))))(t, c.says)
		})
	}
}

// Each value does what its comment says, and nothing else changes: what appears
// in the output, and how many lines differ.
func TestValues(t *testing.T) {
	before := expect.Get(Chart(chartDir, standard(nil)))(t)
	for _, c := range []struct {
		path  string
		value any
		gives []string
	}{
		{"image.repository", "registry.local/paddock", []string{"image: registry.local/paddock:0.1.0"}},
		{"image.tag", "1.2.3", []string{"image: ghcr.io/paddock-scheduler/scheduler:1.2.3"}},
		{"image.digest", "sha256:" + strings.Repeat("a", 64), []string{"image: ghcr.io/paddock-scheduler/scheduler@sha256:" + strings.Repeat("a", 64)}},
		{"image.pullPolicy", "Never", []string{"imagePullPolicy: Never"}},
		{"imagePullSecrets", []any{map[string]any{"name": "mine"}}, []string{"imagePullSecrets:", "- name: mine"}},
		{"replicaCount", 5, []string{"replicas: 5", `pods: "15"`}},
		{"extraArgs", []any{"--v=4"}, []string{"- --v=4"}},
		{"schedulerConfig", "leaderElection: {leaderElect: {{ .Values.leaderElection }}}\nrestAuthorization: Delegated", []string{"leaderElection: {leaderElect: true}"}},
		{"yunikornDefaults", map[string]any{"queues.yaml": "partitions: []\n"}, []string{
			"kind: ConfigMap", "name: yunikorn-defaults", "helm.sh/resource-policy: keep", "partitions: []",
		}},
		{"resources", map[string]any{"limits": map[string]any{"memory": "8Gi"}}, []string{"memory: 8Gi"}},
		{"goMemoryLimit", "6GiB", []string{"value: 6GiB"}},
		{"priorityClassName", "mine", []string{"priorityClassName: mine", "values: [mine]"}},
		{"nodeSelector", map[string]any{"disk": "ssd"}, []string{"nodeSelector:", "disk: ssd"}},
		{"tolerations", []any{map[string]any{"operator": "Exists"}}, []string{"tolerations:", "- operator: Exists"}},
		{"affinity", map[string]any{"podAffinity": map[string]any{}}, []string{"affinity:", "podAffinity: {}"}},
		{"podLabels", map[string]any{"app": "yunikorn"}, []string{"app: yunikorn"}},
		{"podAnnotations", map[string]any{"note": "x"}, []string{"note: x"}},
		{"service.name", "queues", []string{"name: queues", "restHosts: [queues]"}},
		{"service.type", "NodePort", []string{"type: NodePort"}},
		{"service.port", 9090, []string{"port: 9090", "containerPort: 9090", "restAddress: 0.0.0.0:9090"}},
		{"rest.tlsSecret", "mine", []string{"secretName: mine", "mountPath: /etc/paddock-rest", "restTLSCertFile: /etc/paddock-rest/tls.crt"}},
		{"rest.hosts", []any{"queues.example.com", "other"}, []string{"restHosts: [queues.example.com, other]"}},
		{"daemonSetProfile", "agents", []string{"- schedulerName: agents", "enabled: [{name: DynamicResources}, {name: QueuePreemption}, {name: DefaultPreemption}]"}},
		{"networkPolicy.restFrom", []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.10/32"}}}, []string{"- ipBlock:", "cidr: 10.0.0.10/32"}},
		{"disruptionBudget.maxUnavailable", "50%", []string{"maxUnavailable: 50%"}},
		{"serviceAccount.annotations", map[string]any{"cloud/role": "r"}, []string{"cloud/role: r"}},
		{"holdTaint", "Never", []string{"- name: NodeReservation", "holdTaint: Never"}},
		{"maxVictimGrace", "10m", []string{"- name: NodeReservation", "maxVictimGrace: 10m"}},
		{"daemonSetNamespaces", []any{"kube-system", "monitoring"}, []string{"- name: NodeReservation", "daemonSetNamespaces:", "- kube-system", "- monitoring"}},
		{"daemonSetOwner", "Claimed", []string{"daemonSetOwner: Claimed"}},
		{"maxDynamicQueues", 2000000, []string{"maxDynamicQueues: 2000000"}},
		{"maxDynamicQueuesPerNamespace", 0, []string{"maxDynamicQueuesPerNamespace: 0"}},
		{"podGroups.enabled", true, []string{"- name: Coscheduling", "resources: [podgroups]", "- --feature-gates=NominatedNodeNameForExpectation=false"}},
		{"requireSpread", true, []string{"requiredDuringSchedulingIgnoredDuringExecution:", "topologyKey: topology.kubernetes.io/zone"}},
	} {
		after := expect.Get(Chart(chartDir, standard(nest(c.path, c.value))))(t)
		for _, text := range c.gives {
			line := func(s string) bool { return strings.TrimSpace(s) == text }
			expect.That(t, slices.ContainsFunc(strings.Split(string(after), "\n"), line),
				"%s %v: no line %q", c.path, c.value, text)
			expect.That(t, strings.Count(string(before), text) < strings.Count(string(after), text),
				"%s %v: %q is there as often without it", c.path, c.value, text)
		}
		objects(t, after)
	}
}

// TestOnlyAuthorizedAccountsReadByDefault: the chart's default does not show the pods of one tenant to
// another.
func TestOnlyAuthorizedAccountsReadByDefault(t *testing.T) {
	for want, values := range map[bool]map[string]any{true: nil, false: nest("rest.authorization", "None")} {
		text := string(expect.Get(Chart(chartDir, standard(values)))(t))
		expect.Same(t, fmt.Sprint("authorized with ", values), want, strings.Contains(text, "restAuthorization: Delegated\n"))
	}
}

// The Go runtime is told a part of the memory limit, whatever that is.
func TestMemoryLimit(t *testing.T) {
	limits := func(memory any) map[string]any { return map[string]any{"limits": map[string]any{"memory": memory}} }
	for _, c := range []struct {
		values map[string]any
		want   string // of GOMEMLIMIT; none if empty
	}{
		{nil, "3276MiB"},
		{nest("resources", limits("1Gi")), "819MiB"},
		{nest("resources", limits("1.5Gi")), "1228MiB"},
		{nest("resources", limits("16384Mi")), "13107MiB"},
		{nest("resources", limits("1000M")), "762MiB"},
		{nest("resources", limits("1Ti")), "838860MiB"},
		{nest("resources", limits(2147483648)), "1638MiB"},
		{nest("resources", limits(nil)), ""},
		{nest("resources", map[string]any{"limits": nil}), ""},
		{map[string]any{"goMemoryLimit": "50%", "resources": limits("1Gi")}, "512MiB"},
		{map[string]any{"goMemoryLimit": "700MiB", "resources": limits("1Gi")}, "700MiB"},
		{map[string]any{"goMemoryLimit": "", "resources": limits("1Gi")}, ""},
	} {
		text := expect.Get(Chart(chartDir, standard(c.values)))(t)
		_, after, _ := strings.Cut(string(text), "- name: GOMEMLIMIT\n")
		line, _, _ := strings.Cut(after, "\n")
		expect.Same(t, fmt.Sprint(c.values)+": GOMEMLIMIT", c.want, strings.TrimPrefix(strings.TrimSpace(line), "value: "))
	}
}

// Where helm asks the API server, policies that it does not know are refused, with what to do.
func TestPoliciesServed(t *testing.T) {
	const kind = "admissionregistration.k8s.io/%s/MutatingAdmissionPolicy"
	for version, says := range map[string]string{
		"v1": "on 1.35 it is v1beta1", "v1beta1": "--feature-gates=MutatingAdmissionPolicy=true",
	} {
		for _, name := range []string{"admission.setSchedulerName", "admission.setUser"} {
			served := func(serves ...string) error {
				release := standard(nest(name, version))
				release.Serves = serves
				_, err := Chart(chartDir, release)
				return err
			}
			expect.Holds(t, served())
			expect.Holds(t, served("v1/Pod", fmt.Sprintf(kind, version)))
			expect.Fails(t, served("v1/Pod"), says)
			expect.Fails(t, served("v1/Pod"), name+" is "+version)
		}
	}
}

// What can be switched off is gone. In kube-system a quota of critical pods would count those
// of the cluster, too.
func TestReleasesWithout(t *testing.T) {
	off := func(path string) Release { return standard(nest(path, false)) }
	for gone, release := range map[string]Release{
		"ClusterRole": off("rbac.create"), "PodDisruptionBudget": off("disruptionBudget.enabled"),
		"NetworkPolicy": off("networkPolicy.enabled"), "ResourceQuota": off("criticalPodsQuota"),
		"ResourceQuota of critical pods": {Name: "paddock", Namespace: "kube-system"},
	} {
		kind, _, _ := strings.Cut(gone, " ")
		for key := range charted(t, release) {
			expect.That(t, !strings.HasPrefix(key.Kind, kind), "%+v: there is %v", release, key)
		}
	}
}

// requireSpread adds to an affinity of one's own, and takes nothing of it away. Where two
// replicas never share a node, an update goes on only by taking one away first.
func TestAffinities(t *testing.T) {
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	term := func(key string) map[string]any { return map[string]any{"topologyKey": key} }
	own := map[string]any{
		"nodeAffinity":    map[string]any{required: map[string]any{}},
		"podAntiAffinity": map[string]any{required: []any{term("rack")}, "preferredDuringSchedulingIgnoredDuringExecution": []any{}},
	}
	replicas := term("kubernetes.io/hostname")
	ours := map[string]any{
		"app.kubernetes.io/name": "paddock", "app.kubernetes.io/instance": "paddock", "app.kubernetes.io/component": "scheduler",
	}
	replicas["labelSelector"] = map[string]any{"matchLabels": ours}
	both := runtime.DeepCopyJSON(own)
	both["podAntiAffinity"].(map[string]any)[required] = []any{term("rack"), replicas}
	oneLess := map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": 0.0, "maxUnavailable": 1.0}}
	for _, c := range []struct {
		values           map[string]any
		affinity, update map[string]any
	}{
		{nil, nil, nil},
		{map[string]any{"affinity": own}, own, nil},
		{map[string]any{"requireSpread": true}, map[string]any{"podAntiAffinity": map[string]any{required: []any{replicas}}}, oneLess},
		{map[string]any{"requireSpread": true, "affinity": own}, both, oneLess},
	} {
		for key, o := range charted(t, standard(c.values)) {
			if key.Kind != "Deployment" {
				continue
			}
			for path, want := range map[string]map[string]any{
				"spec.template.spec.affinity": c.affinity, "spec.strategy": c.update,
				"spec.template.metadata.labels": ours, // of every revision
			} {
				got, _, err := unstructured.NestedMap(o.Object, strings.Split(path, ".")...)
				expect.OK(t, err)
				expect.Same(t, fmt.Sprint(c.values, path), want, got)
			}
		}
	}
}

// In another namespace, under another name, only the lease and what belongs to it stay in kube-system.
func TestOtherNamespace(t *testing.T) {
	text := expect.Get(Chart(chartDir, Release{Name: "second", Namespace: "queues"}))(t)
	for key := range objects(t, text) {
		known := slices.Contains([]string{"", "queues", "kube-system"}, key.Namespace)
		expect.That(t, known, "%v is in another namespace", key)
	}
	expect.That(t, !strings.Contains(string(text), "namespace: yunikorn"), "there is namespace yunikorn")
}

// properties lists the paths of a JSON schema that have no properties of their own.
func properties(schema map[string]any, at string, into map[string]bool) {
	list, ok := schema["properties"].(map[string]any)
	if !ok || at == "resources" {
		into[at] = true
		return
	}
	for name, below := range list {
		properties(below.(map[string]any), strings.TrimPrefix(at+"."+name, "."), into)
	}
}

// The schema knows what values.yaml has, and nothing more but helm's own global.
func TestSchemaIsComplete(t *testing.T) {
	var schema, values map[string]any
	expect.OK(t, json.Unmarshal(expect.Get(os.ReadFile(chartDir+"/values.schema.json"))(t), &schema))
	expect.OK(t, yaml.UnmarshalStrict(expect.Get(os.ReadFile(chartDir+"/values.yaml"))(t), &values))
	known, there := map[string]bool{}, map[string]any{}
	properties(schema, "", known)
	flat(values, "", func(path string) bool { return known[path] }, there)
	delete(known, "global")
	expect.Same(t, "values.yaml, against the schema", slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(there)))
}

// The chart is for the versions of Kubernetes that docs/install.md names, with
// whatever a provider appends to them.
func TestKubeVersion(t *testing.T) {
	chart := expect.Get(loader.LoadDir(chartDir))(t)
	page := expect.Get(os.ReadFile("../../../docs/install.md"))(t)
	expect.Says(t, string(page), "Kubernetes 1.35 or 1.36.")
	for version, want := range map[string]bool{
		"v1.34.9": false, "v1.35.0": true, "v1.35.8": true, "v1.35.1-gke.100": true, "v1.36.0-rc.0": true, "v1.36.3": true, "v1.37.0": false,
	} {
		expect.Same(t, version, want, chartutil.IsCompatibleRange(chart.Metadata.KubeVersion, version))
	}
}

func TestNotes(t *testing.T) {
	const definition = "kubectl apply -f manifests/crd/podgroups.yaml"
	for _, c := range []struct {
		values      map[string]any
		have, lacks []string
	}{
		{nil, []string{
			"namespace\nyunikorn", "service/yunikorn-service 9080:9080", "lease paddock-scheduler", "rollout status deployment paddock-scheduler",
			"ghcr.io/paddock-scheduler/scheduler:0.1.0",
			`curl --insecure --header "Authorization: Bearer $TOKEN" https://localhost:9080/`, "--clusterrole=paddock-rest-reader --serviceaccount=yunikorn:paddock-reader",
			"kubectl proxy", "networkPolicy.restFrom names others",
		}, []string{"http:", definition, "DaemonSets"}},
		{nest("rest.authorization", "None"), []string{"curl http://localhost:9080/"}, []string{"https", "Bearer", "kubectl proxy"}},
		{nest("networkPolicy.enabled", false), nil, []string{"networkPolicy"}},
		{nest("daemonSetProfile", "agents"), []string{"spec.schedulerName: agents"}, nil},
		{nest("podGroups.enabled", true), []string{definition}, nil},
		{nest("rest", map[string]any{"tlsSecret": "mine", "authorization": "None"}), []string{"curl --insecure https://localhost:9080/"}, []string{"http:", "Bearer"}},
		{nest("rbac.create", false), []string{"rbac.create is false"}, nil},
	} {
		text := expect.Get(Notes(chartDir, standard(c.values)))(t)
		expect.Says(t, text, c.have...)
		for _, not := range c.lacks {
			expect.That(t, !strings.Contains(text, not), "%v: notes with %q:\n%s", c.values, not, text)
		}
	}
}
