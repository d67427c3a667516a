package reasons

// The codes, in the order of the way of a pod: placed, admitted by quota, in order, on a
// node. The table says what each means.
const (
	Starting                   Code = "Starting"
	ConfigurationInvalid       Code = "ConfigurationInvalid"
	ConfigurationUnreadable    Code = "ConfigurationUnreadable"
	NamespaceAnnotationInvalid Code = "NamespaceAnnotationInvalid" // a warning: no pod waits for it
	SchedulingGated            Code = "SchedulingGated"            // also where another plugin keeps the pod from being tried

	RequestTooLarge        Code = "RequestTooLarge"
	TooManyResourceTypes   Code = "TooManyResourceTypes"
	NoPlacementRuleMatched Code = "NoPlacementRuleMatched"
	PlacementRuleFailed    Code = "PlacementRuleFailed"
	QueueNotFound          Code = "QueueNotFound"
	QueueNotLeaf           Code = "QueueNotLeaf"
	QueueDraining          Code = "QueueDraining"
	SubmitDenied           Code = "SubmitDenied"
	InvalidQueueName       Code = "InvalidQueueName"
	TooManyQueues          Code = "TooManyQueues"
	InvalidUserInfo        Code = "InvalidUserInfo"
	HardGangUnsupported    Code = "HardGangUnsupported"
	SoftGangIgnored        Code = "SoftGangIgnored" // a warning: no pod waits for it
	PodGroupIgnored        Code = "PodGroupIgnored" // a warning: no pod waits for it

	PodGroupIncomplete Code = "PodGroupIncomplete"

	OverMax              Code = "OverMax"
	OverUserLimit        Code = "OverUserLimit"
	OverGroupLimit       Code = "OverGroupLimit"
	MaxApplications      Code = "MaxApplications"
	UserMaxApplications  Code = "UserMaxApplications"
	GroupMaxApplications Code = "GroupMaxApplications"

	InOrder    Code = "InOrder"
	BackingOff Code = "BackingOff"
	NoNodeFits Code = "NoNodeFits"
	NodeHeld   Code = "NodeHeld"

	PreemptionDisabled      Code = "PreemptionDisabled"
	PreemptionNever         Code = "PreemptionNever"
	PreemptionDelayed       Code = "PreemptionDelayed"
	PreemptionPaced         Code = "PreemptionPaced"
	PreemptionRefused       Code = "PreemptionRefused"
	PodGroupBeyondGuarantee Code = "PodGroupBeyondGuarantee"
	MakingRoom              Code = "MakingRoom"
	WaitingForRoom          Code = "WaitingForRoom"
	RoomAwaited             Code = "RoomAwaited"
	RoomImpossible          Code = "RoomImpossible"
	HoldTimedOut            Code = "HoldTimedOut"
	HoldSuperseded          Code = "HoldSuperseded"
	HoldNodeGone            Code = "HoldNodeGone"
	HoldNodeUnschedulable   Code = "HoldNodeUnschedulable"
	HoldGivenUp             Code = "HoldGivenUp"
	Preempted               Code = "Preempted"
)

// Entry explains a code to people.
type Entry struct {
	Code Code
	// Meaning says what has happened, without the numbers of a case.
	Meaning string
	// Remedy says what users or administrators can do about it.
	Remedy string
}

// Table lists every code once, in the order of the way of a pod.
func Table() []Entry { return append([]Entry(nil), table...) }

// Explain returns the table's entry of a code and whether there is one.
func Explain(code Code) (Entry, bool) {
	entry, known := byCode[code]
	return entry, known
}

var table = []Entry{
	{Starting, "The scheduler has just started and has not seen all pods and queues yet.",
		"Wait; if it lasts longer than a minute, look for errors in the scheduler's log."},
	{ConfigurationInvalid, "The queue configuration cannot be used, and there was no valid one since the scheduler started.",
		"Correct queues.yaml; the sentence says where it is wrong. It is read again as soon as it changes."},
	{ConfigurationUnreadable, "The ConfigMaps with the queue configuration could not be read since the scheduler started.",
		"Let the scheduler's service account list and watch ConfigMaps in the namespace; the sentence says which one, and what the API server answered."},
	{NamespaceAnnotationInvalid, "An annotation of a namespace cannot be understood and counts as absent: what it was to limit or to guarantee has no limit and no guarantee.",
		"Correct the annotation of the namespace; the sentence names it and says what is wrong with it."},
	{SchedulingGated, "The pod has scheduling gates that another controller or a user has to remove.",
		"Look at spec.schedulingGates of the pod and find the controller or user that set them. Where the sentence names a plugin, that plugin says what the pod lacks, such as a resource claim."},
	{RequestTooLarge, "The pod requests so much of a resource that no cluster could hold it.",
		"Correct the request; a unit such as Ei in place of Mi is the usual cause."},
	{TooManyResourceTypes, "The pod requests more types of resources than a pod may, which is 64.",
		"Remove types from spec.containers[].resources.requests and limits that the pod does not need; extended resources count with each name."},
	{NoPlacementRuleMatched, "None of the placement rules gave a queue for the pod, and there is no root.default.",
		"Name an existing leaf queue in label yunikorn.apache.org/queue, or add a placement rule with create: true."},
	{PlacementRuleFailed, "A placement rule gave a result that cannot hold the pod.",
		"Read the sentence: it names the rule. Correct the rule in queues.yaml or the label it reads."},
	{QueueNotFound, "The queue the pod belongs to does not exist and the rule may not create it.",
		"Correct the queue name, add the queue to queues.yaml, or set create: true on the rule."},
	{QueueNotLeaf, "The queue has child queues; only leaf queues hold pods.",
		"Name one of its leaf queues."},
	{QueueDraining, "The queue was removed from queues.yaml and only finishes what it has.",
		"Use another queue, or put the queue back into queues.yaml."},
	{SubmitDenied, "The user is in no submit or admin list from the queue up to root.",
		"Add the user or group to submitacl of the queue or a parent."},
	{InvalidQueueName, "The queue name is empty, too long or has characters that are not allowed, or a placement rule with create: true would make the queue with too many levels.",
		"Use 1 to 64 characters out of letters, digits and - _ # @ / : for each part between dots. A rule makes queues of up to 8 levels, root included, and also one level below a queue that exists: name a queue with fewer levels, or write its parents into queues.yaml."},
	{TooManyQueues, "Placement rules with create: true would have to make the pod's queue, and have made as many queues as they may, for the pod's namespace or in all.",
		"Use a queue that exists, or write the queue into queues.yaml. The pod is tried again when queues without pods are removed. The administrator can raise maxDynamicQueues and maxDynamicQueuesPerNamespace of QueueSort."},
	{InvalidUserInfo, "The annotation yunikorn.apache.org/user.info is not the JSON object it must be, has more than 64 KiB, or has the name of a user or group with more than 253 bytes.",
		`Write it as {"user":"name","groups":["group"]} with names of at most 253 bytes and at most 64 KiB in all, or remove it.`},
	{HardGangUnsupported, "The pod demands that its whole gang starts at once or not at all, which this scheduler does not offer yet.",
		"Set gangSchedulingStyle=Soft, or remove the task-groups annotation. Pods of a PodGroup start together, where the scheduler is installed with Coscheduling."},
	{SoftGangIgnored, "The pods of a gang with gangSchedulingStyle=Soft run as ordinary pods, each as soon as it can, because this scheduler does not offer gangs yet.",
		"If the application can start pod by pod there is nothing to do. Otherwise give it a queue with enough guaranteed for all of it, or make its pods members of a PodGroup, where the scheduler is installed with Coscheduling."},
	{PodGroupIgnored, "The pods of a PodGroup run as ordinary pods, each as soon as it can, because the scheduler is installed without Coscheduling.",
		"If they can start one by one there is nothing to do; remove the label and this reason goes away. Otherwise ask whoever runs the scheduler to install it with PodGroups: docs/install.md says how."},
	{PodGroupIncomplete, "The pods of a PodGroup start together, and there is no such PodGroup, or not enough of its pods can start.",
		"Read the sentence. If there is no such PodGroup make it, or correct the label; else make the pods that are missing, look at those that found no node, or lower minMember of the PodGroup."},
	{OverMax, "With the pod the queue, or one of its parents, would use more than its max.",
		"Wait until pods of the queue finish, raise the max in queues.yaml, or ask for less; waiting does not help a pod that alone asks for more than the max."},
	{OverUserLimit, "With the pod the user would use more than the limit set for users.",
		"Wait until the user's pods finish, or raise the limit in queues.yaml."},
	{OverGroupLimit, "With the pod the group would use more than the limit set for groups.",
		"Wait until the group's pods finish, or raise the limit in queues.yaml."},
	{MaxApplications, "The queue, or one of its parents, already runs as many applications as maxapplications allows.",
		"Wait until an application of the queue finishes, or raise maxapplications."},
	{UserMaxApplications, "The user already runs as many applications as the limit allows.",
		"Wait until one of the user's applications finishes, or raise maxapplications of the limit."},
	{GroupMaxApplications, "The group already runs as many applications as the limit allows.",
		"Wait until one of the group's applications finishes, or raise maxapplications of the limit."},
	{InOrder, "Pods of other queues or applications are before this one.",
		"Nothing: it is tried when its turn comes. A larger guarantee or priority moves it forward."},
	{BackingOff, "The pod was tried a moment ago without success.",
		"Nothing: it is tried again when its back-off is over. If it fails again and again, the events of the pod say what fails: kubectl describe pod."},
	{NoNodeFits, "No node could take the pod when it was last tried.",
		"Read the sentence: it counts the nodes by what was missing at the last try, as kubectl describe pod does. Make room on a node that suits the pod, add one, or ask for less."},
	{NodeHeld, "The node is held for a pod for which room is being made.",
		"Nothing: the hold ends when that pod runs or gives up."},
	{PreemptionDisabled, "No others are made to leave for the pod, because queues do not preempt: the partition has preemption.enabled: false.",
		"Wait until pods finish, or set preemption.enabled: true in queues.yaml."},
	{PreemptionNever, "No others are made to leave for the pod, because it asks for no preemption: its preemptionPolicy is Never.",
		"Wait until pods finish, or give the pod another PriorityClass."},
	{PreemptionDelayed, "No others are made to leave for the pod yet, because it has not waited long enough to preempt them.",
		"Wait; property preemption.delay of the leaf queue says how long."},
	{PreemptionPaced, "The pod is planned for a little later: as many pods were preempted in this moment as maxVictimsPerRound allows, or failed plans for other pods have used up the planning time.",
		"Nothing: its turn comes. Raise maxVictimsPerRound of QueuePreemption for a faster pace; where plans fail, pods with PreemptionRefused say why."},
	{PreemptionRefused, "No others may be, or need to be, made to leave for the pod.",
		"Read the sentence: it names the law or the obstacle. A larger guarantee of the queue lets its pods preempt; see docs/laws.md."},
	{PodGroupBeyondGuarantee, "No others are made to leave for the pod, because its PodGroup starts as a whole, and lacks more than guarantees let it take from other queues.",
		"Raise guaranteed of the queue that the sentence names to what the group requests and the queue uses, lower minMember of the PodGroup, or wait: with enough free room the group starts, and no pod has to leave."},
	{MakingRoom, "A node is held for the pod, and others are made to leave it: pods of queues over their guarantee, or, for a DaemonSet pod, pods of no higher priority.",
		"Nothing: it starts there once they are gone. Pods that leave have their grace period."},
	{WaitingForRoom, "The pod fits a node once pods that leave already are gone, so no pod is preempted for it. The room is for the pod that is first in the order then. Only for a DaemonSet pod, which can run on this node only, the node is held.",
		"Nothing: the room is there once they are gone, and if another pod gets it, this one is planned for again. Its sentence names them. One that is past its time is kept by a finalizer or by a node that does not answer, and is not waited for any more once `reservationTimeout` has passed since its deletion."},
	{RoomAwaited, "The pod can run on one node only, which is held for it, and no other pod is made to leave there, or not yet.",
		"Read the sentence: it says what is waited for and counts the pods that may not go, by rule. The rules are in docs/laws.md (D1 to D8)."},
	{RoomImpossible, "The pod can run on one node only, and would not fit there even if all other pods left that may.",
		"Read the sentence: it counts the pods that may not go, by rule, and says what helps. A higher priority of the pod helps against rule \"higher priority\", and argument daemonSetNamespaces against laws 2, 5 and 7 and a disabled policy."},
	{HoldTimedOut, "The node was held for the pod for as long as reservationTimeout allows: the pods that had to leave did not, or they were gone and the pod did not start there.",
		"Read the FailedScheduling events of the pod for what the node lacks; another plan is made by itself."},
	{HoldSuperseded, "Others took the room that was held for the pod: a DaemonSet pod, which can run on no other node, or pods of another scheduler, because of which the kubelet may have refused the pod.",
		"Nothing at first: another plan is made by itself, after retryInterval and twice as long with each loss in a row. If it happens again and again, keep the pods that the sentence names off these nodes, or let this scheduler place them."},
	{HoldNodeGone, "The node held for the pod was deleted.",
		"Nothing: another plan is made by itself."},
	{HoldNodeUnschedulable, "The node held for the pod became unschedulable, or changed so that it cannot take the pod whichever pods go: by a taint, a label, or what it can hold.",
		"Nothing: another plan is made by itself. Uncordon the node if it should take pods, and take away the taint that the sentence names if it should not be there."},
	{HoldGivenUp, "Making room for the pod was given up, and pods that had not left yet stay.",
		"Read the sentence: it says what stood in the way. If the API server refused a delete, let the scheduler's service account patch pods/status and delete pods, or correct the webhook that refused; another plan is made by itself."},
	{Preempted, "The pod was deleted to make room for a pod of a queue that is under its guarantee, or for a DaemonSet pod that can run on this node only.",
		"Read the sentence: it names that pod and the rules. To protect pods, give their queue a larger guarantee, or preemption.policy disabled; from DaemonSet pods only a higher priority protects."},
}

var byCode = func() map[Code]Entry {
	m := make(map[Code]Entry, len(table))
	for _, e := range table {
		m[e.Code] = e
	}
	return m
}()
