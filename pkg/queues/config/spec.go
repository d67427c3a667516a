package config

import (
	"regexp"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Spec is a complete and valid queue configuration, with every inheritance and
// default resolved. It is immutable: a reload makes a new one.
type Spec struct {
	// Root is the queue tree; never nil, always a parent.
	Root *Queue
	// Rules are the placement rules in the order they are tried. Empty means
	// the implicit rule: provided, without create.
	Rules []Rule
	// PreemptionEnabled is false only where partition key preemption.enabled says so.
	PreemptionEnabled bool
	// Checksum identifies the document: SHA-256 in upper-case hex of the text
	// without its "checksum:" line. Empty for a Spec made in code.
	Checksum string
	// Document is the text that was read; empty for a Spec made in code.
	Document string
	// ClusterID is option service.clusterId, which stands beside the document; empty
	// where it is not set.
	ClusterID string
	// Warnings name what was accepted but is not acted upon, in document order: the
	// first 1,000 that were found, and then how many more there are.
	Warnings []Problem
}

// Queue is one configured queue.
type Queue struct {
	Settings
	// Children are sorted by name; empty for a leaf.
	Children []*Queue
}

// Quota is what a queue is promised and what it may use at most, without its ancestors'.
type Quota struct {
	Guaranteed resources.Guarantee
	Max        resources.Limit
	// MaxApplications bounds the running applications below the queue; 0 is unlimited.
	MaxApplications uint64
}

// Settings is what the configuration says of a queue; a dynamic queue has them from a template.
type Settings struct {
	// Name is the last segment of Path ("root.a.b"); both are lower case. The root's are "root".
	Name, Path string
	// Leaf is true for queues that take applications.
	Leaf bool
	// Quota is the queue's own. Root has neither guarantee nor max.
	Quota
	// Properties are all properties after inheritance, also those we do not know.
	Properties map[string]string
	// Policies is what Properties mean.
	Policies Policies
	// SubmitACL and AdminACL say which users may submit here and below; admin implies submit.
	SubmitACL, AdminACL ACL
	// Template configures dynamic leaves below this queue; nil when neither the
	// queue nor an ancestor has one. Leaves have none.
	Template *Template
	// Limits are the user and group limits of this queue in document order.
	Limits []Limit
}

// Template is what a dynamic leaf gets at its creation.
type Template struct {
	Quota
	Properties map[string]string
	Policies   Policies
}

// SortPolicy orders the applications of a leaf.
type SortPolicy string

// The sort policies. "stateaware" of old files is read as fifo.
const (
	SortFIFO SortPolicy = "fifo"
	SortFair SortPolicy = "fair"
)

// PreemptionPolicy is the queue property preemption.policy.
type PreemptionPolicy string

// The preemption policies (seed 003, law 7): a fence keeps the asks below the
// queue from looking for victims above it; disabled protects the queue's pods.
const (
	PreemptionDefault  PreemptionPolicy = "default"
	PreemptionFence    PreemptionPolicy = "fence"
	PreemptionDisabled PreemptionPolicy = "disabled"
)

// DefaultPreemptionDelay applies where preemption.delay is unset or unusable (P1).
const DefaultPreemptionDelay = 30 * time.Second

// Policies are the queue properties we act on, parsed. A value that cannot be
// parsed has its default here and a warning in Spec.Warnings.
type Policies struct {
	// ApplicationSort is property application.sort.policy (leaf; default fifo).
	ApplicationSort SortPolicy
	// PrioritySort is property application.sort.priority (enabled is the default).
	PrioritySort bool
	// PriorityFence is property priority.policy: fence.
	PriorityFence bool
	// PriorityOffset is property priority.offset.
	PriorityOffset int32
	// Preemption is property preemption.policy.
	Preemption PreemptionPolicy
	// PreemptionDelay is property preemption.delay; positive; used on leaves only.
	PreemptionDelay time.Duration
}

// DefaultPolicies are the policies of a queue without any property.
func DefaultPolicies() Policies {
	return Policies{
		ApplicationSort: SortFIFO,
		PrioritySort:    true,
		Preemption:      PreemptionDefault,
		PreemptionDelay: DefaultPreemptionDelay,
	}
}

// Limit is one entry of a queue's limits: a ceiling for users or groups.
type Limit struct {
	// Description is the text under the key "limit".
	Description string
	// Users and Groups are names, or "*" for each one without a limit of its own.
	Users, Groups []string
	// MaxResources bounds what the user, or the group as a whole, uses below the queue.
	MaxResources resources.Limit
	// MaxApplications bounds the running applications; 0 is unlimited.
	MaxApplications uint64
}

// ACL says which users and groups may do a thing. The zero value allows none.
type ACL struct {
	// Everybody is true for "*": all users.
	Everybody     bool
	Users, Groups []string
}

// Allows tells whether the user, or one of the groups, is listed.
func (a ACL) Allows(user string, groups []string) bool {
	return a.Everybody || slices.Contains(a.Users, user) ||
		slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(a.Groups, g) })
}

// RuleKind is the name of a placement rule.
type RuleKind string

// The placement rules. Recovery is implicit and cannot be configured.
const (
	RuleProvided RuleKind = "provided"
	RuleUser     RuleKind = "user"
	RuleTag      RuleKind = "tag"
	RuleFixed    RuleKind = "fixed"
)

// Rule is one placement rule, valid and with its parent chain.
type Rule struct {
	Kind RuleKind
	// Create allows the rule to make missing queues.
	Create bool
	// Value is the tag name of a tag rule or the queue of a fixed rule; empty otherwise.
	Value  string
	Filter Filter
	// Parent gives the queue below which the result is placed; nil means root.
	Parent *Rule
}

// Filter restricts a rule to users and groups. The zero value allows all.
type Filter struct {
	// Deny turns the meaning round: listed users and groups are refused.
	Deny bool
	// Users and Groups are plain names; UserExp and GroupExp stand in their
	// place where the single entry of the list was a regular expression.
	Users, Groups     []string
	UserExp, GroupExp *regexp.Regexp
	// NoNames is true where a list has entries and none of them is a name: the filter
	// is not empty, and that list has no user or group.
	NoNames bool
}

// Empty tells whether the filter has no list, and so allows all users.
func (f Filter) Empty() bool {
	return !f.NoNames && len(f.Users) == 0 && len(f.Groups) == 0 && f.UserExp == nil && f.GroupExp == nil
}

// Problem is one error or warning of a document.
type Problem struct {
	// Line is the line in the document, from 1; 0 when it is about no line in particular.
	Line int `json:"line,omitempty"`
	// Path is the queue path the problem is in ("root.a.b"), or another place
	// such as "placementrules[2]"; empty for the document as a whole.
	Path string `json:"path,omitempty"`
	// Key is the key within Path ("resources.max.memory"); may be empty.
	Key string `json:"key,omitempty"`
	// Text is the sentence for people.
	Text string `json:"text"`
}
