package rest

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// batchSize is how many records an answer has at most, as YuniKorn has it.
const batchSize = 10_000

// number reads a parameter of a request that is a number of at least least; the default
// where there is none. If it returns false, it has already written the error.
func number(w http.ResponseWriter, r *http.Request, name string, least, byDefault uint64) (uint64, bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return byDefault, true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least {
		documents.Refuse(w, http.StatusBadRequest, "Parameter not understood", fmt.Sprintf("%s=%q: give a number of at least %d", name, text, least))
		return 0, false
	}
	return n, true
}

// eventBatch answers GET events/batch: at most count records from the one with the
// number start on; without start from the first one that is kept.
func (s *Server) eventBatch(w http.ResponseWriter, r *http.Request) {
	count, ok := number(w, r, "count", 1, batchSize)
	if !ok {
		return
	}
	s.options.Events.Collect()
	lowest, _ := s.options.Events.Bounds()
	start, ok := number(w, r, "start", 0, lowest)
	if !ok {
		return
	}
	records, lowest, next, _ := s.options.Events.Range(nil, start, int(min(count, batchSize)))
	documents.Write(w, func(p *documents.JSONWriter) {
		p.Open('{')
		p.TextField("InstanceUUID", s.instance)
		p.Key("LowestID")
		p.Number(int64(lowest))
		p.Key("HighestID")
		p.Number(int64(max(next, 1) - 1))
		p.Key("EventRecords")
		p.Open('[')
		for i := range records {
			p.Event(&records[i])
		}
		p.Close(']')
		p.Close('}')
	})
}
