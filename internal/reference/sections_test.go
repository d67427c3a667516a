package reference

// Section is a mapping of queues.yaml and its keys.
type Section struct {
	// Title names it; About is one paragraph, or empty.
	Title, About string
	// Frame is a document with "%s" in place of the content of the mapping, and Needs are
	// keys, as YAML, without which it is invalid.
	Frame string
	Needs []string
	// Keys are all keys that the parser knows there, in the order of the page.
	Keys []Key
}

// Key is one key of queues.yaml, or one property of a queue.
type Key struct {
	Name, Type string
	// Default is the value without the key.
	Default string
	// Meaning is the meaning of the key, with its unit if it has one.
	Meaning string
	// Example is the key with a value, as YAML in one line, maybe followed by other keys
	// that it needs. For a property it is a value other than the default.
	Example string
	// Ignored is true if YuniKorn knows the key and it has no effect here.
	Ignored bool
}

const (
	amountsType = "map of quantities"
	queueFrame  = "partitions: [{queues: [{%s}]}]"
	rootFrame   = "partitions: [{%s}]"
)

// Sections are the keys of queues.yaml from the outside to the inside.
func Sections() []Section {
	out := []Section{
		{Title: "Document", Frame: "{%s}", Keys: []Key{
			{"partitions", "list", "required", "The partitions. There is one, called `default`.", "partitions: [{queues: [{name: a}]}]", false},
			{"checksum", "text", "none", "Written by tools of YuniKorn. Its value is not looked at.", "", true},
		}},
		{Title: "Partition", About: "One entry of `partitions`.", Frame: rootFrame, Needs: []string{"queues: [{name: a}]"}, Keys: partitionKeys()},
		{Title: "Queue", About: "One entry of `queues`, of the partition or of another queue. A list with the one queue `root` is the tree from root; any other list is what is below root.", Frame: queueFrame, Needs: []string{"name: a"}, Keys: queueKeys()},
		{
			Title: "Resources of a queue",
			About: "A type that `max` does not name is unlimited, one that `guaranteed` does not name is guaranteed 0. A map of zeros only says nothing; beside other amounts, a max of 0 forbids the type. See [quantities](#quantities).",
			Frame: "partitions: [{queues: [{name: a, resources: {%s}}]}]",
			Keys: []Key{
				{"guaranteed", amountsType, "nothing guaranteed", "What the queue can take back from queues that use more than they are guaranteed. Not more than the max of the queue and of those above it, and together with its siblings not more than the parent's.", "guaranteed: {vcore: 4, memory: 16Gi}", false},
				{"max", amountsType, "unlimited", "What all pods below the queue may use together. Not more than that of a queue above it.", "max: {vcore: 8, nvidia.com/gpu: 2}", false},
			},
		},
		{
			Title: "Child template", About: "What dynamic leaves below the queue get when a placement rule makes them. A queue without one has that of the queue above it. Dynamic queues do not inherit properties otherwise.",
			Frame: "partitions: [{queues: [{name: a, parent: true, childtemplate: {%s}}]}]",
			Keys: []Key{
				{"maxapplications", "whole number", "0, unlimited", "As of a queue.", "maxapplications: 3", false},
				{"properties", "map of text", "none", "As of a queue.", "properties: {preemption.delay: 5s}", false},
				{"resources", "mapping", "none", "As of a queue.", "resources: {max: {vcore: 2}}", false},
			},
		},
		{
			Title: "Limit of users and groups", About: "One entry of `limits`. What pods request counts, and applications that run, below the queue. A limit with a name wins over `\"*\"`, and may not be larger than that of a queue above.",
			Frame: "partitions: [{queues: [{name: a, limits: [{%s}]}]}]", Needs: []string{"users: [ann]", "maxapplications: 2"},
			Keys: []Key{
				{"limit", "text", "none", "A description, for people.", "limit: what ann may use", false},
				{"users", "list of text", "none", "Names of users, or `\"*\"` for each user without a limit of their own. The users are limited one by one.", "users: [ann]", false},
				{"groups", "list of text", "none", "Names of groups, or `\"*\"`. A group is limited as a whole; the first group of a user that has a limit counts.", "groups: [dev]", false},
				{"maxresources", amountsType, "unlimited", "The most they may use below the queue.", "maxresources: {vcore: 2}", false},
				{"maxapplications", "whole number", "0, unlimited", "The most applications they may run at once.", "maxapplications: 2", false},
			},
		},
		{
			Title: "Placement rule", About: "One entry of `placementrules`, or the `parent` of one. Rules are tried in order, and the first that gives a queue wins. Without any rule, pods go to the queue they name.",
			Frame: "partitions: [{queues: [{name: a}], placementrules: [{%s}]}]", Needs: []string{"name: user", "create: true"},
			Keys: []Key{
				{"name", "word", "required", "`provided`: the queue that the pod names. `user`: a queue with the name of the user. `tag`: with value `namespace` the queue has the name of the namespace, with `namespace.parentqueue` it is the one that the annotation of the namespace names. `fixed`: the queue `value`.", "name: user", false},
				{"create", "true or false", "false", "Whether the rule may make queues that do not exist.", "create: true", false},
				{"value", "text", "none", "The tag of a rule `tag`, the queue of a rule `fixed`.", "value: root.a, name: fixed", false},
				{"filter", "mapping", "everybody", "Whom the rule is for; see below.", "filter: {users: [ann]}", false},
				{"parent", "placement rule", "root", "A rule that gives the queue below which the result of this one is.", "parent: {name: user, create: true}", false},
			},
		},
		{
			Title: "Filter of a placement rule", Frame: "partitions: [{queues: [{name: a}], placementrules: [{name: user, create: true, filter: {%s}}]}]", Needs: []string{"groups: [dev]"},
			Keys: []Key{
				{"type", "word", "allow", "`allow`: the rule is for those who are listed. `deny`: for all others.", "type: deny", false},
				{"users", "list of text", "none", "Names of users, or one regular expression alone, which has one of `^$*+?()[{}` or a bar. In a list of several, what is not a name is left out, with a warning. A filter without lists allows all users.", "users: [ann]", false},
				{"groups", "list of text", "none", "Names of groups, or one regular expression alone.", "groups: [dev]", false},
			},
		},
	}
	return append(out, furtherSections()...)
}

// furtherSections are sections with few effective keys.
func furtherSections() []Section {
	return []Section{
		{Title: "Preemption of a partition", Frame: "partitions: [{queues: [{name: a}], preemption: {%s}}]", Keys: []Key{
			{"enabled", "true or false", "true", "Whether queues preempt. DaemonSet pods do in any case.", "enabled: false", false},
			{"quotapreemptionenabled", "true or false", "false", "In YuniKorn: preempts pods of a queue whose max was lowered. Here what runs goes on.", "quotapreemptionenabled: true", true},
		}},
		{Title: "Node sort policy", About: "Checked, and without effect: nodes are scored by the plugins of the scheduler's profile (`NodeResourcesFit` and others).",
			Frame: "partitions: [{queues: [{name: a}], nodesortpolicy: {%s}}]", Keys: []Key{
				{"type", "word", "none", "`fair` or `binpacking`.", "type: fair", true},
				{"resourceweights", "map of numbers", "none", "Weights by resource type, not negative.", "resourceweights: {vcore: 1.5}", true},
			}},
		{Title: "User and group resolver", Frame: "partitions: [{queues: [{name: a}], usergroupresolver: {%s}}]", Keys: []Key{
			{"type", "text", "none", "In YuniKorn: where groups of users are looked up. Here they come from annotation `yunikorn.apache.org/user.info` only.", "type: os", true},
		}},
	}
}

func partitionKeys() []Key {
	return []Key{
		{"name", "text", "`default`", "No other name is possible.", "name: default", false},
		{"queues", "list of queues", "required", "The queues, see below.", "queues: [{name: a}]", false},
		{"placementrules", "list of rules", "the rule `provided`", "Which queue a pod belongs to.", "placementrules: [{name: provided}]", false},
		{"limits", "list of limits", "none", "Limits of users and groups in the whole cluster; the same as `limits` of root.", "limits: [{users: [ann], maxapplications: 1}]", false},
		{"preemption", "mapping", "preemption is enabled", "See below.", "preemption: {enabled: false}", false},
		{"nodesortpolicy", "mapping", "none", "See below.", "nodesortpolicy: {type: fair}", true},
		{"usergroupresolver", "mapping", "none", "See below.", "usergroupresolver: {type: os}", true},
	}
}

func queueKeys() []Key {
	return []Key{
		{"name", "text", "required", "1 to 64 letters, digits and `- _ : # / @`. Read without case; a path has dots between names, as in `root.a.b`.", "name: a", false},
		{"parent", "true or false", "false", "True makes a queue without queues below it a parent, so that rules can make queues there. Pods belong to leaves only.", "parent: true", false},
		{"resources", "mapping", "nothing guaranteed, unlimited", "See below. Root has none: the whole cluster is its size.", "resources: {max: {vcore: 2}}", false},
		{"maxapplications", "whole number", "0, unlimited", "The most applications that run below the queue at once. Must be set, and not be larger, where a queue above sets it.", "maxapplications: 3", false},
		{"properties", "map of text", "those of the parent", "See [properties](#properties-of-a-queue).", "properties: {preemption.policy: fence}", false},
		{"submitacl", "access list", "nobody", "Who may submit here and below: `users groups`, each separated by commas; `\"*\"` is everybody; a leading space means groups only. Who may submit to a queue above may submit here.", "submitacl: \"ann,bob dev\"", false},
		{"adminacl", "access list", "nobody", "As `submitacl`; administrators may submit, too.", "adminacl: ann", false},
		{"childtemplate", "mapping", "that of the parent", "What queues that rules make below this one get.", "childtemplate: {maxapplications: 2}, parent: true", false},
		{"limits", "list of limits", "none", "Limits of users and groups below this queue.", "limits: [{users: [ann], maxapplications: 1}]", false},
		{"queues", "list of queues", "none", "The queues below; a queue that has some is a parent. At most 100 levels.", "queues: [{name: b}]", false},
	}
}

// Properties are the properties of a queue. The default of a property has the same effect
// as leaving it out.
func Properties() []Key {
	return []Key{
		{"application.sort.policy", "word", "fifo", "Of a leaf. `fifo`: the application that came first goes first. `fair`: the one with the smallest dominant share. `stateaware` of old files is read as fifo, with a warning.", "fair", false},
		{"application.sort.priority", "word", "enabled", "Whether priority counts before the policy above; on a parent, among the queues below it. `enabled` or `disabled`.", "disabled", false},
		{"priority.policy", "word", "default", "`fence`: seen from outside, the priorities of the pods below count as the offset. Not passed on to queues below.", "fence", false},
		{"priority.offset", "whole number", "0", "Added to the priority of the pods below, from -2147483648 to 2147483647. Not passed on.", "10", false},
		{"preemption.policy", "word", "default", "`fence`: pods below preempt only pods below. `disabled`: pods below are not preempted by queues. Only `disabled` is passed on. See law 7 in [laws](laws.md).", "fence", false},
		{"preemption.delay", "duration", "30s", "Of a leaf. How long a pod waits, from its creation, before others are preempted for it. Above 0.", "5s", false},
		{"application.unschedasks.backoff", "whole number", "0", "In YuniKorn: after so many pods that cannot be scheduled the application is put aside.", "3", true},
		{"application.unschedasks.backoff.delay", "duration", "30s", "In YuniKorn: for how long.", "10s", true},
		{"quota.preemption.delay", "duration", "0s", "In YuniKorn: when pods over a lowered max are preempted.", "10s", true},
	}
}
