package process

import (
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/paddock-scheduler/paddock/pkg/rest"
)

// OfferPreviews has previews served by REST from now on.
func (p *Process) OfferPreviews(previewer rest.Previewer) { p.previewer.Store(&previewer) }

// offered is what makes previews; nil for no previews.
func (p *Process) offered() rest.Previewer {
	if stored := p.previewer.Load(); stored != nil {
		return *stored
	}
	return nil
}

// PriorityClass is as that of the Watcher.
func (p *Process) PriorityClass(name string) (class *schedulingv1.PriorityClass, readable bool) {
	if w := p.watcher.Load(); w != nil {
		return w.PriorityClass(name)
	}
	return nil, false
}
