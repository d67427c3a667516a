package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// sampleCluster is a cluster with one Deployment and one waiting pod.
func sampleCluster() *fake.Clientset {
	three := int32(3)
	return fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{demo.OwnerLabel: demo.OwnerValue}}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}, Spec: appsv1.DeploymentSpec{Replicas: &three}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: reasons.AdmittedCondition, Status: corev1.ConditionFalse, Message: "root.a is full"}}}})
}

func TestCommands(t *testing.T) {
	for words, want := range map[string]string{
		"pods":         "NAMESPACE   NAME   PHASE     NODE   WHY IT WAITS\nns          p      Pending   -      root.a is full\n",
		"scale ns/d 9": "ns/d has 9 replicas now, 3 before\n",
	} {
		client, out := sampleCluster(), &bytes.Buffer{}
		list := strings.Fields(words)
		if err := checkCommand(list); err != nil {
			t.Errorf("%s: %v", words, err)
			continue
		}
		c := commands[list[0]]
		if err := c.do(t.Context(), client, out, list[1:]); err != nil || out.String() != want {
			t.Errorf("%s: got %v,\n%s\nwant\n%s", words, err, out, want)
		}
		d, err := client.AppsV1().Deployments("ns").Get(t.Context(), "d", metav1.GetOptions{})
		if scaled := err == nil && *d.Spec.Replicas == 9; scaled != (list[0] == "scale") {
			t.Errorf("%s: the Deployment was scaled: %t, %v", words, scaled, err)
		}
	}
}

func TestBadScaleArguments(t *testing.T) {
	client := sampleCluster()
	for words, want := range map[string]string{
		"d 9": "NAMESPACE/DEPLOYMENT", "/d 9": "NAMESPACE/DEPLOYMENT", "ns/ 9": "NAMESPACE/DEPLOYMENT",
		"ns/d many": `"many"`, "ns/d -1": `"-1"`, "ns/d 3000000000": `"3000000000"`, "ns/none 1": "ns/none",
	} {
		expect.Fails(t, scaleCommand(t.Context(), client, &bytes.Buffer{}, strings.Fields(words)), want)
	}
}

func TestRecord(t *testing.T) {
	dir := t.TempDir()
	var out, problems bytes.Buffer
	if code := run(context.Background(), []string{"--dir", dir, "pods"}, environment(), &out, &problems); code != 1 ||
		!strings.Contains(problems.String(), "no cluster runs in "+dir) || !strings.Contains(problems.String(), "make run") {
		t.Errorf("exit code %d, %s", code, problems.String())
	}
	expect.OK(t, writeRecord(dir, "/k"))
	if got, err := readRecord(dir); err != nil || got != "/k" {
		t.Errorf("got %q, %v", got, err)
	}
	for range 2 {
		expect.Holds(t, removeRecord(dir))
	}
}

func TestHelpNamesOnlyWhatIsThere(t *testing.T) {
	l := &launcher{settings: settings{root: "/repo", dir: "/repo/.cluster"}, restAddress: "127.0.0.1:7"}
	text := l.help("/repo/.cluster/admin.kubeconfig")
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "bin/localcluster" {
			continue
		}
		if err := checkCommand(words[1:]); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if strings.Count(text, "  bin/localcluster ") != 2 || !strings.Contains(text, "  bin/kubectl-paddock queues --server http://127.0.0.1:7\n") || !strings.Contains(text, "web pages    http://127.0.0.1:7/\n") || !strings.Contains(text, "http://127.0.0.1:7/ws/v1") || strings.Contains(text, "curl") {
		t.Errorf("unexpected help:\n%s", text)
	}
	l.dir = "/elsewhere"
	if !strings.Contains(l.help(""), "bin/localcluster --dir /elsewhere pods") {
		t.Errorf("the directory is not named:\n%s", l.help(""))
	}
}
