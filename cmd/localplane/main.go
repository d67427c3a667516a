// Localplane is a Kubernetes control plane in one binary, for tests and demonstrations on one machine: etcd,
// kube-apiserver and kube-controller-manager as upstream ships them, and simulated nodes. The first argument chooses
// the program, the rest are its flags:
//
//	localplane etcd|kube-apiserver|kube-controller-manager|nodes [flags]
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

const usage = "usage: localplane etcd|kube-apiserver|kube-controller-manager|nodes [flags]"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	// The programs read os.Args themselves and take its first element for their name.
	os.Args = slices.Delete(os.Args, 0, 1)
	os.Exit(run(os.Args[0]))
}

// run starts the program with this name and returns its exit code.
func run(program string) int {
	var command *cobra.Command
	switch program {
	case "etcd":
		etcdmain.Main(os.Args)
		return 0
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllermanager.NewControllerManagerCommand()
	case "nodes":
		command = newNodesCommand()
	default:
		fmt.Fprintf(os.Stderr, "localplane: unknown program %q\n%s\n", program, usage)
		return 2
	}
	return cli.Run(command)
}
