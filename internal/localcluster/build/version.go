package build

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// kubernetesLine is the requirement of Kubernetes in go.mod.
var kubernetesLine = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)`)

// LDFlags returns the linker flags that stamp the version of Kubernetes that go.mod in
// root requires; without them the servers report v0.0.0.
func LDFlags(root string) (string, error) {
	file := filepath.Join(root, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("version of Kubernetes: %w", err)
	}
	m := kubernetesLine.FindSubmatch(data)
	if m == nil {
		return "", fmt.Errorf("version of Kubernetes: %s does not require k8s.io/kubernetes", file)
	}
	const stamp = "-X k8s.io/component-base/version."
	return fmt.Sprintf("%[1]sgitVersion=%[2]s %[1]sgitMajor=%[3]s %[1]sgitMinor=%[4]s", stamp, m[1], m[2], m[3]), nil
}
