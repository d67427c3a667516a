package cache

import (
	"maps"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// Namespace is what annotations of a namespace say. The zero Namespace has none.
type Namespace struct {
	Annotations map[string]string // read-only
	Quota       *config.Quota     // nil if the annotations set none
}

// Namespaces are the known namespaces by name. Make it with make; a missing one is the
// zero Namespace.
type Namespaces map[string]Namespace

// Upsert sets the annotations of a namespace. It tells whether this is a change, and
// returns an error for each annotation that is invalid and counts as absent.
func (n Namespaces) Upsert(name string, annotations map[string]string) (changed bool, errs []error) {
	quota, errs := placement.NamespaceQuota(annotations)
	old, known := n[name]
	n[name] = Namespace{Annotations: annotations, Quota: quota}
	return !known || !maps.Equal(old.Annotations, annotations), errs
}

// Of returns a namespace as placement sees it.
func (n Namespaces) Of(name string) placement.Namespace {
	return placement.Namespace{Name: name, Annotations: n[name].Annotations}
}

// Quota returns the quota of a namespace; nil if its annotations set none.
func (n Namespaces) Quota(name string) *config.Quota { return n[name].Quota }
