// Command kubectl-paddock is a kubectl plugin: with it on the PATH, "kubectl
// paddock" shows queues as the scheduler sees them, and checks and compares
// configurations without a cluster. It reads and never writes.
//
// command.go is the command line and the exit codes. validate.go and diff.go are
// the commands that need no cluster, outlook.go is what diff says of one;
// queues.go, top.go, explain.go, preview.go, decisions.go and holds.go ask the scheduler. connection.go reaches it, usage.go reads
// a tree of queues, live or recorded; output.go and table.go write.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // logins that kubeconfigs name
)

// version is set by the build.
var version = "unknown"

func main() {
	os.Exit(run(os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
