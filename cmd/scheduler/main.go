// Command scheduler is upstream's kube-scheduler with the queues of this project
// as plugins. All flags and the whole configuration file are upstream's. Without
// --config it runs manifests/config/second-scheduler.yaml.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // the log format json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the client
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric kubernetes_build_info
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme" // arguments of Coscheduling

	_ "github.com/paddock-scheduler/paddock/apis/config/scheme" // arguments of our plugins
)

func main() {
	os.Exit(cli.Run(newCommand(options.NewOptions())))
}
