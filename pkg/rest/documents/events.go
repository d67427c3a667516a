package documents

import (
	"strconv"

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
			p.separate()
			p.quote(name)
			p.b = append(p.b, `:{"value":`...)
			p.b = strconv.AppendInt(p.b, int64(amount), 10)
			p.b = append(p.b, '}')
		}
		p.Close('}')
	}
	p.Close('}')
	p.Close('}')
}
