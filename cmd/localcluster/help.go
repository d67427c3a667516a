package main

import (
	"fmt"
	"path/filepath"
)

// help says where things are and what to try, with nothing but what this repository has.
func (l *launcher) help(kubeconfig string) string {
	program, root := "bin/localcluster", filepath.Dir(l.bin)
	if l.dir != filepath.Join(root, defaultDir) {
		program += " --dir " + l.dir
	}
	farewell := "Ctrl-C stops everything."
	if l.kubeconfig != "" {
		farewell = "Ctrl-C stops the scheduler and removes the samples; the cluster stays."
	}
	return fmt.Sprintf(`
kubeconfig   %[1]s
web pages    %[2]s/
REST API     %[2]s/ws/v1/...
logs         %[3]s

Try, in another terminal, in %[4]s:
  bin/kubectl-paddock queues --server %[2]s
  %[5]s pods
  %[5]s scale paddock-sample-shop/web 9

If you have kubectl: kubectl --kubeconfig %[1]s get pods -A -o wide

%[6]s
`, kubeconfig, l.restURL(), filepath.Join(l.dir, "logs"), root, program, farewell)
}
