// Localcluster is "make run": it starts the control plane and our scheduler, which make has built beside it, with simulated
// nodes, applies the samples, waits until their pods are placed, shows the queues and waits for Ctrl-C.
//
//	localcluster [--nodes 20] [--dir .cluster] [--kubeconfig FILE]
//
// Each flag can be given as an environment variable of the same name in capitals. With --kubeconfig only our
// scheduler is started, against that cluster; nothing else there is started or stopped, and the samples
// are removed at the end. The scheduler's REST API takes a free port when 9080 is in use.
//
// Ctrl-C ends every process in order and gives exit code 0. When a component ends by itself, the end of its log is shown,
// everything else is stopped, and the exit code is 1.
//
// While it runs, the same program shows and changes things, so that kubectl is not
// needed:
//
//	localcluster [--dir .cluster] pods
//	localcluster [--dir .cluster] scale NAMESPACE/DEPLOYMENT REPLICAS
package main
