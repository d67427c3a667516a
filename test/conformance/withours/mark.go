package withours

import (
	"context"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Mark is the environment variable that names a file, which is created when a scheduler
// with our plugins is created. A run of a suite that leaves no such file had upstream's
// schedulers only, and its verdicts say nothing about our plugins.
const Mark = "CONFORMANCE_MARK"

// marked makes a plugin, and creates the file.
func marked(build frameworkruntime.PluginFactory) frameworkruntime.PluginFactory {
	return func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		if path := os.Getenv(Mark); path != "" {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return nil, err
			}
		}
		return build(ctx, args, h)
	}
}
