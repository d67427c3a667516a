package documents

import (
	"github.com/paddock-scheduler/paddock/pkg/eventlog"
)

// Event writes a record.
func (p *JSONWriter) Event(r *eventlog.Record) {
	p.Open('{')
	p.NumberField("type", int64(r.Type))
	p.TextField("objectID", r.Object)
	p.TextField("message", r.Message)
	p.NumberField("timestampNano", r.Nanos)
	p.NumberField("eventChangeType", int64(r.Change))
	p.NumberField("eventChangeDetail", int64(r.Detail))
	p.TextField("referenceID", r.Reference)
	p.Key("resource")
	p.Open('{')
	if !r.Amount.IsZero() {
		p.Key("resources")
		p.Open('{')
		for name, amount := range r.Amount.All() {
			p.Key(name)
			p.Open('{')
			p.NumberField("value", int64(amount))
			p.Close('}')
		}
		p.Close('}')
	}
	p.Close('}')
	p.Close('}')
}
