package app

import (
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/rest"
)

// OfferPreviews makes REST serve previews from now on.
func (p *Process) OfferPreviews(previewer rest.Previewer) { p.previewer.Store(&previewer) }

// offered returns the maker of previews; nil for none.
func (p *Process) offered() rest.Previewer {
	return ptr.Deref(p.previewer.Load(), nil)
}

// PriorityClass returns the class of a name or, without a name, the default class; nil
// for none. It returns false if the classes cannot be read.
func (p *Process) PriorityClass(name string) (class *schedulingv1.PriorityClass, readable bool) {
	if w := p.watcher.Load(); w != nil {
		return w.PriorityClass(name)
	}
	return nil, false
}
