package docs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

// patience is how long the cluster may take to become what the pages describe.
const patience = 3 * time.Minute

// patient are the flags of the schedulers: on a machine that stalls, for example under
// commands that compile, the leader must not lose its lease, because it would exit.
var patient = []string{"--v=2", "--leader-elect-lease-duration=2m", "--leader-elect-renew-deadline=90s"}

// stage starts the scheduler and makes what testdata/stage has, file by file. The first lines of a file
// name the pod to delete before it is applied, and the explanation to wait for before the next one:
//
//	# delete NAMESPACE/POD
//	# await NAMESPACE/POD TEXT of its explanation
func stage(ctx context.Context, bin string) error {
	const queues = "kubectl create configmap yunikorn-configs -n yunikorn --from-file=queues.yaml=queues.yaml"
	if _, err := shell(ctx, queues, 0, setting{}); err != nil {
		return err
	}
	_, err := suite.cluster.StartScheduler(ctx, localcluster.SchedulerOptions{
		Binary: filepath.Join(bin, "scheduler"), Config: manifests.SecondScheduler,
		Arguments:  []localcluster.Argument{queueSort("restAddress", strings.TrimPrefix(suite.rest, "http://"))},
		Kubeconfig: suite.cluster.KubeconfigPath(localcluster.UserAdmin), LeaderElection: true, Args: patient,
	})
	if err != nil {
		return err
	}
	// The pages ask the first scheduler, because a standby does not know its decisions.
	const leads = `until [[ -n $(kubectl -n kube-system get lease paddock-scheduler -o jsonpath='{.spec.holderIdentity}' --ignore-not-found) ]]; do sleep 0.2; done`
	if _, err := shell(ctx, leads, 0, setting{}); err != nil {
		return fmt.Errorf("no process leads: %w", err)
	}
	if err := startSecure(ctx, bin); err != nil {
		return err
	}
	if _, err := shell(ctx, "kubectl apply -k manifests/base", 0, setting{}); err != nil {
		return err
	}
	files, err := filepath.Glob("testdata/stage/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := play(ctx, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// play applies a file and waits as its first lines say.
func play(ctx context.Context, file string) error {
	path, err := filepath.Abs(file)
	text, err2 := os.ReadFile(file)
	if err := cmp.Or(err, err2); err != nil {
		return err
	}
	told := func(what string, do func(rest string) error) error {
		for line := range strings.SplitSeq(string(text), "\n") {
			if rest, ok := strings.CutPrefix(line, "# "+what+" "); ok {
				if err := do(rest); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err = told("delete", func(pod string) error {
		namespace, name, _ := strings.Cut(pod, "/")
		_, err := shell(ctx, fmt.Sprintf("kubectl delete pod %s -n %s --wait=false", name, namespace), 0, setting{})
		return err
	})
	if err != nil {
		return err
	}
	if _, err := shell(ctx, fmt.Sprintf("kubectl apply -f %q", path), 0, setting{}); err != nil {
		return err
	}
	return told("await", func(rest string) error {
		pod, want, _ := strings.Cut(rest, " ")
		return await(ctx, pod, want)
	})
}

// await waits until the explanation of a pod has a text.
func await(ctx context.Context, pod, want string) error {
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		url := suite.rest + "/api/v1/pods/" + pod + "/explain"
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		if err = cmp.Or(err, response.Body.Close()); err != nil {
			return err
		}
		if last = string(body); strings.Contains(last, want) {
			return nil
		}
	}
	return fmt.Errorf("pod %s is not %q after %v: %s", pod, want, patience, last)
}

// startSecure starts another scheduler, a standby of the first one, that answers over TLS
// and authenticates readers with the API server. ca.crt has signed its certificate, which
// is valid for the name of the Service and for this machine.
func startSecure(ctx context.Context, bin string) error {
	const service = "yunikorn-service.yunikorn.svc"
	certificate, key, err := certutil.GenerateSelfSignedCertKey(service, []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	authority, tlsKey := filepath.Join(suite.work, "ca.crt"), filepath.Join(suite.work, ".tls.key")
	if err := errors.Join(os.WriteFile(authority, certificate, 0o600), os.WriteFile(tlsKey, key, 0o600)); err != nil {
		return err
	}
	address, err := localcluster.FreeAddress()
	if err != nil {
		return err
	}
	suite.secure = "https://" + address
	_, err = suite.cluster.StartScheduler(ctx, localcluster.SchedulerOptions{
		Name: "secure", Binary: filepath.Join(bin, "scheduler"), Config: manifests.SecondScheduler,
		Arguments: []localcluster.Argument{
			queueSort("restAddress", address), queueSort("restTLSCertFile", authority), queueSort("restTLSKeyFile", tlsKey), queueSort("restAuthorization", "Delegated"),
		},
		Kubeconfig: suite.cluster.KubeconfigPath(localcluster.UserAdmin), LeaderElection: true, Args: patient,
	})
	return err
}

func queueSort(name, value string) localcluster.Argument {
	return localcluster.Argument{Plugin: "QueueSort", Name: name, Value: value}
}
