package rest

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/paddock-scheduler/paddock/pkg/eventlog"
)

// batchSize is how many records an answer has at most, as YuniKorn has it.
const batchSize = 10_000

// number reads a parameter of a request; the default where there is none. It is
// false for what is no number of at least least, which was answered then.
func number(w http.ResponseWriter, r *http.Request, name string, least, byDefault uint64) (uint64, bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return byDefault, true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least {
		problem(w, http.StatusBadRequest, "Parameter not understood", fmt.Sprintf("%s=%q: give a number of at least %d", name, text, least))
		return 0, false
	}
	return n, true
}

// recorded refuses requests for events where they are not recorded.
func (s *Server) recorded(w http.ResponseWriter) bool {
	if s.events == nil {
		problem(w, http.StatusNotFound, "No events", "this process does not record events")
	}
	return s.events != nil
}

// eventBatch answers GET events/batch: at most count records from the one with the
// number start on; without start from the first one that is kept.
func (s *Server) eventBatch(w http.ResponseWriter, r *http.Request) {
	if !s.recorded(w) {
		return
	}
	count, ok := number(w, r, "count", 1, batchSize)
	if !ok {
		return
	}
	s.events.Collect()
	lowest, _ := s.events.Bounds()
	start, ok := number(w, r, "start", 0, lowest)
	if !ok {
		return
	}
	records, lowest, next := s.events.Range(start, int(min(count, batchSize)))
	header(w)
	p := newPage(w)
	p.open('{')
	p.textField("InstanceUUID", s.instance)
	p.key("LowestID")
	p.number(int64(lowest))
	p.key("HighestID")
	p.number(int64(max(next, 1) - 1))
	p.key("EventRecords")
	p.open('[')
	for i := range records {
		p.event(&records[i])
	}
	p.close(']')
	p.close('}')
	_ = p.done()
}

// event writes a record.
func (p *page) event(r *eventlog.Record) {
	p.open('{')
	p.numberField("type", int64(r.Type))
	p.textField("objectID", r.Object)
	p.textField("message", r.Message)
	p.numberField("timestampNano", r.Nanos)
	p.numberField("eventChangeType", int64(r.Change))
	p.numberField("eventChangeDetail", int64(r.Detail))
	p.textField("referenceID", r.Reference)
	p.key("resource")
	p.open('{')
	if !r.Amount.IsZero() {
		p.key("resources")
		p.open('{')
		for name, amount := range r.Amount.All() {
			p.separate()
			p.quote(name)
			p.b = append(p.b, `:{"value":`...)
			p.b = strconv.AppendInt(p.b, int64(amount), 10)
			p.b = append(p.b, '}')
		}
		p.close('}')
	}
	p.close('}')
	p.close('}')
}
