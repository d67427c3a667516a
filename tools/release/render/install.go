package render

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// installs are the files of manifests/install and the kustomizations they come
// from, below manifests.
var installs = map[string]string{
	"second-scheduler.yaml":          "base",
	"single.yaml":                    "overlays/single",
	"ha.yaml":                        "overlays/ha",
	"replace-default.yaml":           "overlays/replace-default",
	"migrate-from-yunikorn.yaml":     "overlays/migrate-from-yunikorn",
	"with-podgroups.yaml":            "overlays/with-podgroups",
	"admission.yaml":                 "admission",
	"admission-mutating.yaml":        "admission/mutating-v1",
	"admission-only-queues.yaml":     "admission/only-queues",
	"admission-require-user.yaml":    "admission/require-user",
	"admission-namespace-queue.yaml": "admission/namespace-queue",
	"admission-bounded-pods.yaml":    "admission/bounded-pods",
}

// copies are files of the chart, which cannot reach out of its directory, and of
// manifests/install, and where they come from, below manifests.
var copies = map[string]string{
	"install/podgroups-crd.yaml":                  "crd/podgroups.yaml",
	"chart/files/validate.yaml":                   "admission/validate.yaml",
	"chart/files/only-queues.yaml":                "admission/only-queues/policy.yaml",
	"chart/files/require-user.yaml":               "admission/require-user/policy.yaml",
	"chart/files/namespace-queue.yaml":            "admission/namespace-queue/policy.yaml",
	"chart/files/bounded-pods.yaml":               "admission/bounded-pods/policy.yaml",
	"chart/files/set-scheduler-name-v1.yaml":      "admission/mutating-v1/set-scheduler-name.yaml",
	"chart/files/set-user-v1.yaml":                "admission/mutating-v1/set-user.yaml",
	"chart/files/set-user-v1beta1.yaml":           "admission/mutating-v1beta1/set-user.yaml",
	"chart/files/set-scheduler-name-v1beta1.yaml": "admission/mutating-v1beta1/set-scheduler-name.yaml",
}

// Files returns the content of all files below manifests that are made from
// others, by path.
func Files(manifests string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, from := range installs {
		text, err := Kustomize(filepath.Join(manifests, from))
		if err != nil {
			return nil, err
		}
		head := fmt.Sprintf("# Made by \"make render\" from manifests/%s: change that, not this.\n", from)
		out["install/"+name] = append([]byte(head), text...)
	}
	for name, from := range copies {
		text, err := os.ReadFile(filepath.Join(manifests, from))
		if err != nil {
			return nil, fmt.Errorf("file of the chart: %w", err)
		}
		head := fmt.Sprintf("# A copy of manifests/%s, made by \"make render\".\n", from)
		out[name] = append([]byte(head), text...)
	}
	return out, nil
}

// Write brings these files up to date and returns the paths of those it changed.
func Write(manifests string) ([]string, error) {
	files, err := Files(manifests)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		at := filepath.Join(manifests, name)
		if before, err := os.ReadFile(at); err == nil && bytes.Equal(before, text) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return changed, fmt.Errorf("write %s: %w", name, err)
		}
		if err := os.WriteFile(at, text, 0o644); err != nil {
			return changed, fmt.Errorf("write %s: %w", name, err)
		}
		changed = append(changed, at)
	}
	return changed, nil
}
