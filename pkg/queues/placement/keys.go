package placement

// Domain is the prefix of YuniKorn's labels and annotations.
const Domain = "yunikorn.apache.org/"

// Keys on pods. Where a key is read as label and as annotation the label wins.
const (
	// KeyApplicationID names the application; label, then annotation.
	KeyApplicationID = Domain + "app-id"
	// KeyLegacyApplicationID is the application label of older versions and of most operators.
	KeyLegacyApplicationID = "applicationId"
	// KeySparkSelector is the label Spark itself puts on driver and executors.
	KeySparkSelector = "spark-app-selector"
	// KeyQueue names the queue; label, then annotation.
	KeyQueue = Domain + "queue"
	// KeyLegacyQueue is the queue label of older versions and of most operators.
	KeyLegacyQueue = "queue"
	// KeyUserInfo is the annotation with user and groups as JSON.
	KeyUserInfo = Domain + "user.info"
	// KeyUsername is the deprecated label with the user's name.
	KeyUsername = Domain + "username"
	// KeyTaskGroups is the annotation with the gang's groups as a JSON list.
	KeyTaskGroups = Domain + "task-groups"
	// KeyTaskGroupName is the annotation that makes a pod a member of a gang's group.
	KeyTaskGroupName = Domain + "task-group-name"
	// KeyPolicyParameters is the annotation with "gangSchedulingStyle=Soft" and the like.
	KeyPolicyParameters = Domain + "schedulingPolicyParameters"
)

// Annotations on namespaces.
const (
	// KeyNamespaceMax is the max of the namespace's dynamic queue, as JSON.
	KeyNamespaceMax = Domain + "namespace.quota"
	// KeyNamespaceMaxCPU and KeyNamespaceMaxMemory are the deprecated form of
	// KeyNamespaceMax, read only where that one is absent.
	KeyNamespaceMaxCPU    = Domain + "namespace.max.cpu"
	KeyNamespaceMaxMemory = Domain + "namespace.max.memory"
	// KeyNamespaceGuaranteed is the guarantee of the namespace's dynamic queue, as JSON.
	KeyNamespaceGuaranteed = Domain + "namespace.guaranteed"
	// KeyNamespaceMaxApps bounds the running applications of the namespace's dynamic queue.
	KeyNamespaceMaxApps = Domain + "namespace.maxApps"
	// KeyParentQueue is the queue below which the namespace's queue belongs.
	KeyParentQueue = Domain + "parentqueue"
)

// DefaultQueue takes what no rule placed, where it exists as a leaf.
const DefaultQueue = "root.default"
