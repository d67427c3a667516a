package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// dryRun sends the rendered chart to the API server, for a namespace without an installation, and
// returns its answer for each object; nothing is stored. A warning is an error.
func dryRun(ctx context.Context, values string) (string, error) {
	text := fmt.Sprintf(`kubectl create namespace chart-values --dry-run=client -o yaml | kubectl apply -f - > said.txt
helm template paddock manifests/chart --namespace chart-values --kube-version 1.35 --values %q > objects.yaml
kubectl apply --server-side --field-manager=chart --force-conflicts --dry-run=server --validate=strict -f objects.yaml 2> said.txt || { cat said.txt; exit 1; }
if [[ -s said.txt ]]; then cat said.txt; exit 1; fi`, values)
	return shell(ctx, text, 0, setting{})
}

// stable tells whether the API server has mutating policies of version v1.
func stable(t *testing.T) bool {
	t.Helper()
	out := expect.Get(shell(t.Context(), "kubectl get --raw /apis/admissionregistration.k8s.io/v1", 0, setting{}))(t)
	return strings.Contains(out, `"mutatingadmissionpolicies"`)
}

// TestChartValues shows that the API server accepts the chart rendered with each file of
// manifests/chart/ci, knows every field, and gives no warnings. That these files set
// every value is checked by the tests that render the chart.
func TestChartValues(t *testing.T) {
	files := expect.Get(filepath.Glob(filepath.Join(suite.root, "manifests/chart/ci/*-values.yaml")))(t)
	expect.That(t, len(files) >= 10, "there are only %q", files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			out, err := dryRun(t.Context(), file)
			if filepath.Base(file) == "admission-values.yaml" && !stable(t) {
				// The policies themselves are tested as v1beta1.
				const says = `no matches for kind "MutatingAdmissionPolicy" in version "admissionregistration.k8s.io/v1"`
				expect.Fails(t, err, says)
				return
			}
			expect.OK(t, err)
			expect.That(t, strings.Count(out, "serverside-applied (server dry run)") >= 5,
				"too few objects:\n%s", out)
			expect.Says(t, out, "deployment.apps/paddock-scheduler ")
		})
	}
}

// TestWrongChartValuesAreFound plants values that the chart passes on unchecked, because
// they are the user's own; the API server has to refuse them.
func TestWrongChartValuesAreFound(t *testing.T) {
	for values, says := range map[string]string{
		"affinity: {podAfinity: {}}":                                   "affinity.podAfinity: field not declared in schema",
		"resources: {requests: {memory: much}}":                        "quantities must match",
		"nodeSelector: {disk: not a label}":                            "spec.template.spec.nodeSelector",
		"networkPolicy: {restFrom: [{ipBlock: {cidr: 10.0.0.10}}]}":    "ipBlock.cidr",
		"networkPolicy: {restFrom: [{podSelector: {app: dashboard}}]}": "field not declared in schema",
		"tolerations: [{key: a, operator: Perhaps}]":                   "supported values",
	} {
		file := filepath.Join(t.TempDir(), "values.yaml")
		expect.OK(t, os.WriteFile(file, []byte(values), 0o600))
		_, err := dryRun(t.Context(), file)
		expect.That(t, err != nil && strings.Contains(err.Error(), says),
			"%s: got %v, want an error with %q", values, err, says)
	}
}

// TestPoliciesServed runs helm with the API server: policies of a version that the API server does not
// know are refused before anything is created, with a message that says what to do.
func TestPoliciesServed(t *testing.T) {
	says := func(version string) string {
		return expect.Get(shell(t.Context(), "helm install policies manifests/chart --namespace chart-values --dry-run=server --set admission.setUser="+version+" 2>&1 || true", 0, setting{}))(t)
	}
	const refused = "admission.setUser is v1, and the API server does not serve MutatingAdmissionPolicy of that version"
	stableSays, betaSays := says("v1"), says("v1beta1")
	expect.That(t, strings.Contains(stableSays, refused) != stable(t), "of v1 helm says: %s", stableSays)
	expect.That(t, !strings.Contains(betaSays, "does not serve"),
		"of v1beta1, which it serves, helm says: %s", betaSays)
}
