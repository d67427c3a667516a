package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
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

func sampleCluster() *fake.Clientset {
	three := int32(3)
	return fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{demo.OwnerLabel: demo.OwnerValue}}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}, Spec: appsv1.DeploymentSpec{Replicas: &three}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "silent"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: reasons.AdmittedCondition, Status: corev1.ConditionFalse, Message: "root.a is full"}}}})
}

func TestCommands(t *testing.T) {
	client := sampleCluster()
	for _, c := range []struct{ words, want string }{
		{"pods", "NAMESPACE   NAME   PHASE     NODE   WHY IT WAITS\nns          p      Pending   -      root.a is full\n"},
		{"scale ns/d 9", "ns/d has 9 replicas now, 3 before\n"},
		{"scale ns/d 0", "ns/d has 0 replicas now, 9 before\n"},
		{"scale ns/silent 2", "ns/silent has 2 replicas now, 1 before\n"},
	} {
		var out bytes.Buffer
		list := strings.Fields(c.words)
		expect.OK(t, checkCommand(list))
		expect.OK(t, commands[list[0]].do(t.Context(), client, &out, list[1:]))
		expect.Same(t, c.words, c.want, out.String())
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
	runs(t, []string{"--dir", dir, "pods"}, 1, "no cluster runs in "+dir, "make run")
	kubeconfig := filepath.Join(dir, "k")
	expect.OK(t, errors.Join(writeRecord(dir, kubeconfig), os.WriteFile(kubeconfig, []byte(kubeconfigOf("http://127.0.0.1:1")), 0o600)))
	const dead = "does it still run?"
	expect.Fails(t, runCommand(t.Context(), dir, []string{"pods"}, io.Discard), dead)
	wrong := runCommand(t.Context(), dir, []string{"scale", "web", "9"}, io.Discard)
	expect.That(t, wrong != nil && !strings.Contains(wrong.Error(), dead), "of a wrong argument: %v", wrong)
	for range 2 {
		expect.OK(t, removeRecord(dir))
	}
}

func TestHelpNamesOnlyWhatIsThere(t *testing.T) {
	l := &launcher{settings: settings{bin: "/repo/bin", dir: "/repo/.cluster"}, restAddress: "127.0.0.1:7"}
	text := l.help("/repo/.cluster/admin.kubeconfig")
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "bin/localcluster" {
			continue
		}
		expect.Holds(t, checkCommand(words[1:]))
	}
	expect.Same(t, "commands of bin/localcluster", 2, strings.Count(text, "  bin/localcluster "))
	expect.Says(t, text, "  bin/kubectl-paddock queues --server http://127.0.0.1:7\n", "web pages    http://127.0.0.1:7/\n", "http://127.0.0.1:7/ws/v1")
	expect.That(t, !strings.Contains(text, "curl"), "unexpected help:\n%s", text)
	l.dir = "/elsewhere"
	expect.Says(t, l.help(""), "bin/localcluster --dir /elsewhere pods")
}
