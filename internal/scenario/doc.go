// Package scenario reads stories of preemption: small worlds written down in a file, the
// askers in them, and what is decided. The files are in pkg/victims/testdata. Three
// drivers tell the same stories:
//
//	pkg/victims       the planner on a plain model
//	test/framework    a real scheduler on an API server that is a map, in virtual time
//	test/integration  the built binary on a real API server
//
// A file is a sequence of commands (see datadriven) with what each prints below
// a line of dashes:
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
//	apply                     does what was decided: the victims leave, the asker runs
//	restart NAME              a pod that left is created again, and asks, as NAME'
//	place NAME node=NAME      an asker runs without preemption
//	usage                     prints what queues use of what they guarantee or limit
//
// An app is the queue's name unless given; an age is 1h. What a pod wants of its
// node beside room is its PLACE:
//
//	port=N        a port of the node, for itself
//	group=NAME    the group it is in, for the others to be apart from or beside
//	apart=NAME    no pod of the group on the same node (anti-affinity, both ways)
//	beside=NAME   a pod of the group on the same node (affinity)
//	spread=NAME   no node has two pods of the group more than another (topology spread)
//
// # Guided tour
//
// world.go is the world of a story, line.go reads its lines, place.go says what pods want
// of nodes beside room and what filters say to that; real schedulers ask upstream's, and
// have to come to the same. story.go follows the commands; the driver decides. outcome.go
// prints decisions and reads them back. cases.go cuts the files into single plans, each
// with the world it is made in: this is what drivers without a planner of their own need.
package scenario
