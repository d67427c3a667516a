// Localcluster is "make run": it builds the control plane and our scheduler, starts both with simulated nodes, applies the
// samples, waits until their pods are placed, shows the queues and waits for Ctrl-C.
//
//	localcluster [--nodes 20] [--dir .cluster] [--kubeconfig FILE]
//
// Each flag can be given as an environment variable of the same name in capitals. With --kubeconfig only our
// scheduler is started, against that cluster; nothing else there is started or stopped, and the samples
// are removed at the end.
//
// Ctrl-C ends every process in order and gives exit code 0. When a component ends by itself, the end of its log is shown,
// everything else is stopped, and the exit code is 1.
//
// Guided tour: main.go has flags and signals, launch.go the steps, screen.go what the user sees.
package main
