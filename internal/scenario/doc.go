// Package scenario reads scenarios of preemption: small clusters written in a file, the
// askers in them, and the decisions. The files are in pkg/planner/testdata. Two drivers
// run the same scenarios:
//
//	pkg/planner             the planner on a plain model
//	pkg/plugins/preemption  the plugin on objects of the API, with upstream's filters
//
// A file is a sequence of commands (see datadriven), each with its output below a line of
// dashes:
//
//	queues                    the tree of the input, see queuestest.Tree; forgets everything else
//	node NAME TYPE=N ...      a node; pods=110 unless it says otherwise
//	budget NAME allowed=N     a PodDisruptionBudget
//	pods                      pods on nodes, one a line:
//	  NAME queue=PATH node=NAME TYPE=N ... [app=NAME] [prio=N] [age=DURATION] [budget=NAME]
//	       [optout] [originator] [daemonset|static|leaving|binding|foreign] [PLACE]
//	waiting                   askers with a plan or hold: NAME queue=PATH TYPE=N ... [node=NAME]
//	ask NAME queue=PATH TYPE=N ... [app=NAME] [prio=N] [never] [PLACE]
//	plan NAME [strict]        decides, and prints the decision
//	apply                     carries out the decision: the victims leave, the asker runs
//	restart NAME              a pod that left is created again, and asks, as NAME'
//	place NAME node=NAME      an asker runs without preemption
//	usage                     prints the usage of queues in the types that they guarantee or limit
//
// An app is the queue's name unless given; an age is 1h. The PLACE of a pod is what it
// needs of its node beside room:
//
//	port=N        a port of the node, for itself
//	group=NAME    its group, for others to be apart from or beside
//	apart=NAME    no pod of the group on the same node (anti-affinity, both ways)
//	beside=NAME   a pod of the group on the same node (affinity)
//	spread=NAME   no node has two pods of the group more than another (topology spread)
package scenario
