package queues

import (
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// RecoveryPath is the hidden leaf for running pods with a queue that is gone and cannot
// be made again. It has no quota and no access list.
const RecoveryPath = config.RootName + "." + config.RecoveryName

// NewDraftFrom returns a draft with the queues of a specification.
func NewDraftFrom(spec *config.Spec) *Draft {
	d := NewDraft(managedSettings(spec.Root, nil))
	d.Apply(spec)
	return d
}

// Apply makes the tree follow a specification, as in YuniKorn:
// queues are added and changed; a dynamic queue that the specification now
// names becomes managed; managed queues it does not name any more begin to
// drain, with everything below them; a draining queue it names again is active.
// Usage is not touched.
func (d *Draft) Apply(spec *config.Spec) {
	d.SetSettings(RootID, managedSettings(spec.Root, nil))
	d.applyChildren(spec.Root, RootID)
}

func (d *Draft) applyChildren(spec *config.Queue, id ID) {
	named := make(map[string]bool, len(spec.Children))
	for _, c := range spec.Children {
		named[c.Name] = true
		d.applyChildren(c, d.applyQueue(c, id))
	}
	for _, c := range d.Queue(id).Children {
		if !named[d.Queue(c).Name] {
			d.leaveOut(c)
		}
	}
}

func (d *Draft) applyQueue(spec *config.Queue, parent ID) ID {
	s := managedSettings(spec, d.Queue(parent))
	if i, ok := findChild(d, d.Queue(parent), spec.Name); ok {
		id := d.Queue(parent).Children[i]
		d.SetSettings(id, s)
		return id
	}
	return d.Add(s)
}

// leaveOut updates a queue that the specification does not name, and all below it: managed
// ones drain, and dynamic ones take the rest from their ancestors.
func (d *Draft) leaveOut(id ID) {
	s := *d.Queue(id).Settings
	parent := d.Queue(s.Parent)
	switch {
	case s.Managed:
		s.State = Draining
	case !s.Leaf:
		s.Template = parent.Template
	}
	inherit(&s, parent)
	d.SetSettings(id, s)
	for _, c := range d.Queue(id).Children {
		d.leaveOut(c)
	}
}

// inherit computes the fields that depend on the ancestors.
func inherit(s *Settings, parent *Queue) {
	s.PathMax, s.PathLimited = s.Max, len(s.Limits) > 0
	if parent != nil {
		s.PathMax = s.Max.Min(parent.PathMax)
		s.PathLimited = s.PathLimited || parent.PathLimited
	}
}

// managedSettings returns the settings of a configured queue. parent is nil for the root.
func managedSettings(spec *config.Queue, parent *Queue) Settings {
	s := Settings{Settings: spec.Settings, Parent: NoQueue, Managed: true}
	if parent != nil {
		s.Parent = parent.ID
	}
	inherit(&s, parent)
	return s
}

// AddDynamic makes the queues that are missing on the way to a leaf, the last
// one a leaf configured by the nearest template, as in YuniKorn, and
// returns the leaf. The namespace is that of the pod for which they are made. A queue that
// exists is returned as it is, but a leaf with the name of the namespace counts as made for
// it from then on.
func (d *Draft) AddDynamic(path, namespace string) ID {
	parent, missing := d.deepest(path)
	for i, name := range missing {
		s := dynamicSettings(d.Queue(parent), name, i == len(missing)-1)
		s.MadeFor = namespace
		parent = d.Add(s)
	}
	if q := d.Queue(parent); !q.Managed && q.Leaf && q.Name == namespace && q.MadeFor != namespace {
		s := *q.Settings
		s.MadeFor = namespace
		d.SetSettings(parent, s)
	}
	return parent
}

func dynamicSettings(parent *Queue, name string, leaf bool) Settings {
	s := Settings{Parent: parent.ID}
	s.Name, s.Path, s.Leaf, s.Policies = name, parent.Path+"."+name, leaf, config.DefaultPolicies()
	if !leaf {
		s.Template = parent.Template
	}
	if t := parent.Template; leaf && t != nil && s.Path != RecoveryPath {
		s.Quota, s.Properties, s.Policies = t.Quota, t.Properties, t.Policies
	}
	inherit(&s, parent)
	return s
}

// Quotas returns what the annotations of a namespace say of a dynamic leaf; nil for nothing.
// Guaranteed and Max replace the leaf's when either of them is set; the one that is not set is
// then cleared. MaxApplications replaces it when above 0.
type Quotas func(namespace string) *config.Quota

// of returns the quota of a dynamic leaf and its namespace: the one that has the name of the
// leaf, if it has a quota, or else the one that the leaf was made for. So a pod that names a
// queue of another namespace does not change its quota.
func (quotas Quotas) of(q *Queue) (namespace string, quota *config.Quota) {
	if q.Managed || !q.Leaf || q.Path == RecoveryPath {
		return "", nil
	}
	if quota := quotas(q.Name); quota != nil {
		return q.Name, quota
	}
	return q.MadeFor, quotas(q.MadeFor)
}

// ApplyQuotas gives each dynamic leaf the quota of its namespace; a leaf without one has
// the template's. It returns the leaves that it changed. Call it when leaves came or went,
// and when namespaces or the specification changed. Only one of the leaves that were made
// for a namespace has the guarantee of the namespace. Otherwise users could multiply it by
// naming more queues.
func (d *Draft) ApplyQuotas(quotas Quotas) (changed []ID) {
	var leaves []*Queue
	guaranteed := map[string]*Queue{}
	for q := range d.All() {
		name, quota := quotas.of(q)
		if quota == nil && q.QuotaNamespace == "" {
			continue
		}
		leaves = append(leaves, q)
		if first := guaranteed[name]; q.MadeFor == name && (first == nil || precedence(q) > precedence(first)) {
			guaranteed[name] = q
		}
	}
	for _, q := range leaves {
		name, quota := quotas.of(q)
		if d.setQuota(q, name, quota, guaranteed[name] == q) {
			changed = append(changed, q.ID)
		}
	}
	return changed
}

// ApplyQuotasTo is ApplyQuotas after one leaf came. It looks at other leaves only where a
// guarantee may go to the leaf or to another one.
func (d *Draft) ApplyQuotasTo(leaf ID, quotas Quotas) (changed []ID) {
	q := d.Queue(leaf)
	name, quota := quotas.of(q)
	switch {
	case quota == nil && q.QuotaNamespace == "":
		return nil
	case quota == nil || !quota.Guaranteed.IsNone() || q.QuotaNamespace != "":
		return d.ApplyQuotas(quotas)
	case d.setQuota(q, name, quota, false):
		return []ID{leaf}
	}
	return nil
}

// precedence says which of the leaves made for a namespace has its guarantee: one with its
// name before others, then the one that has it now.
func precedence(q *Queue) (n int) {
	if q.Name == q.MadeFor {
		n += 2
	}
	if q.QuotaNamespace == q.MadeFor && !q.Guaranteed.IsNone() {
		n++
	}
	return n
}

// setQuota sets the quota of a leaf and tells whether it changed.
func (d *Draft) setQuota(q *Queue, namespace string, quota *config.Quota, guaranteed bool) bool {
	parent := d.Queue(q.Parent)
	s := dynamicSettings(parent, q.Name, true)
	s.State, s.MadeFor = q.State, q.MadeFor
	if quota != nil {
		s.QuotaNamespace = namespace
		if !quota.Guaranteed.IsNone() || !quota.Max.IsUnlimited() {
			s.Guaranteed, s.Max = quota.Guaranteed, quota.Max
			if !guaranteed {
				s.Guaranteed = resources.Guarantee{}
			}
		}
		if quota.MaxApplications > 0 {
			s.MaxApplications = quota.MaxApplications
		}
	}
	inherit(&s, parent)
	if s.QuotaNamespace == q.QuotaNamespace && s.MaxApplications == q.MaxApplications &&
		s.Guaranteed.Equal(q.Guaranteed) && s.Max.Equal(q.Max) {
		return false
	}
	d.SetSettings(q.ID, s)
	return true
}
