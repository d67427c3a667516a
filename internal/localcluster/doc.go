// Package localcluster runs a real Kubernetes control plane on this machine, without containers and without
// root: etcd, kube-apiserver, kube-controller-manager and simulated nodes, each a process of the localplane binary
// on a loopback port, and any number of schedulers.
//
//	cluster, err := localcluster.Start(ctx, localcluster.Options{Dir: t.TempDir(), Binary: "bin/localplane", Nodes: 20})
//	defer cluster.Stop()
//	scheduler, err := cluster.StartScheduler(ctx, localcluster.SchedulerOptions{Binary: "bin/scheduler", Config: manifests.SecondScheduler})
//	client, err := kubernetes.NewForConfig(cluster.AdminConfig())
//
// Start returns when pods can be created: the default service account exists and all
// nodes are Ready and untainted. Each process can be stopped and killed, and a scheduler started
// again; the output of a process is in Dir/logs/NAME.log. Every Start is a
// fresh cluster: the data of an earlier one in Dir is removed, and a Dir that a running
// cluster uses is refused.
//
// No process outlives the one that called Start: Stop ends them in order, and on Linux
// the kernel kills them when the caller dies in any way. On other systems a killed caller
// leaves them behind.
package localcluster
