// Command kubectl-paddock is a kubectl plugin: with it on the PATH, "kubectl
// paddock" shows queues as the scheduler sees them, and checks and compares
// configurations without a cluster. It reads and never writes.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // logins that kubeconfigs name
)

func main() {
	os.Exit(run(os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
