package rest

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/eventlog"
	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// streamBite is how many records a stream takes at a time.
const streamBite = 100

// EventStream is an open stream, as a dump lists it.
type EventStream struct {
	// Name is the address of the reader.
	Name      string
	CreatedAt time.Time

	known bool // may have a reserved place
}

// streams are the open streams.
type streams struct {
	mu   locks.Mutex // guards the rest
	open []*EventStream
}

// enter adds a stream. It returns false if the limit of all streams, or that of this reader,
// is reached.
func (s *streams) enter(stream *EventStream, l *limits) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same, unknown := 0, 0
	for _, other := range s.open {
		if other.Name == stream.Name {
			same++
		}
		if !other.known {
			unknown++
		}
	}
	if len(s.open) >= l.streams || same >= l.streamsPerHost || !stream.known && unknown >= l.streams-l.reservedStreams {
		return false
	}
	s.open = append(s.open, stream)
	return true
}

func (s *streams) leave(stream *EventStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(other *EventStream) bool { return other == stream })
}

// list returns the streams, the first opened first.
func (s *streams) list() []EventStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]EventStream, 0, len(s.open))
	for _, stream := range s.open {
		out = append(out, *stream)
	}
	return out
}

// eventStream answers GET events/stream: a line about this process, the last count records,
// and then each new record, one per line. The stream ends when its reader closes it, does
// not read the lines within limits.streamTime, falls behind the oldest record that is kept,
// or may not read any more. In the last case the last line is the problem.
func (s *Server) eventStream(w http.ResponseWriter, r *http.Request) {
	count, ok := number(w, r, "count", 0, 0)
	if !ok {
		return
	}
	stream := &EventStream{Name: hostOf(r.RemoteAddr), CreatedAt: s.options.Clock.Now(), known: isKnown(r.Context())}
	if !s.streams.enter(stream, &s.limits) {
		documents.Busy(w, "Too many streams", "as many streams of events are open as may be; close one, or ask for events/batch")
		return
	}
	defer s.streams.leave(stream)
	documents.SetHeader(w)
	if r.Method == http.MethodHead {
		return
	}
	s.options.Events.Collect()
	lowest, next := s.options.Events.Bounds()
	sender := &sender{server: s, connection: http.NewResponseController(w), w: w, r: r}
	sender.lines = documents.NewJSONWriter(&sender.text)
	_ = sender.connection.SetReadDeadline(time.Time{}) // the request has been read
	sender.follow(max(lowest, next-min(next, count)))
}

// sender writes one stream.
type sender struct {
	server     *Server
	connection *http.ResponseController
	w          http.ResponseWriter
	r          *http.Request
	text       bytes.Buffer
	lines      *documents.JSONWriter // to text
	records    []eventlog.Record
}

// follow sends the records from number first on, until the stream ends. The first ones are read
// before anything is sent: a slow reader may ask for all that are kept. From time to time the
// guard is asked again whether the reader may read.
func (s *sender) follow(first uint64) {
	s.make(func() {
		s.lines.Open('{')
		s.lines.TextField("InstanceUUID", s.server.instance)
		s.lines.Close('}')
		s.lines.Done()
	})
	for admitted := time.Now(); ; {
		records, lowest, _, more := s.server.options.Events.Range(s.records[:0], first, streamBite)
		if s.records = records; first < lowest {
			return // it was overtaken
		}
		first += uint64(len(records))
		s.make(s.writeRecords)
		if s.send() != nil {
			return
		}
		if len(records) == 0 {
			select {
			case <-s.r.Context().Done():
				return
			case <-more:
			case <-time.After(time.Until(admitted.Add(s.server.limits.streamAdmitted))):
			}
		}
		if time.Since(admitted) < s.server.limits.streamAdmitted {
			continue
		}
		if why := revoked(s.server.options.Guard, s.r); why != nil {
			s.lines.Value(why)
			s.lines.Done()
			_ = s.send() // an error is that the reader has gone away
			return
		}
		admitted = time.Now()
	}
}

func (s *sender) writeRecords() {
	for i := range s.records {
		s.lines.Event(&s.records[i])
		s.lines.Done()
	}
}

// make makes lines. The time counts as making an answer.
func (s *sender) make(lines func()) {
	s.server.inFlight.enter()
	defer s.server.inFlight.leave()
	lines()
}

// send sends the pending lines. It fails if the reader does not read them in time.
func (s *sender) send() error {
	if s.text.Len() == 0 {
		return nil
	}
	if err := s.connection.SetWriteDeadline(time.Now().Add(s.server.limits.streamTime)); err != nil {
		return err
	}
	_, err := s.w.Write(s.text.Bytes())
	s.text.Reset()
	if err != nil {
		return err
	}
	return s.connection.Flush()
}
