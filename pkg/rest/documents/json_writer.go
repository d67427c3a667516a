package documents

import (
	"encoding/json"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// sendSize is how much of an answer is collected before it is sent.
const sendSize = 32 << 10

// JSONWriter writes JSON as it is made: an answer about 20,000 pods is never in memory
// as a whole. The zero value of a field is left out, as YuniKorn does, unless the
// name of the method says otherwise.
type JSONWriter struct {
	w    io.Writer
	b    []byte
	bare bool // nothing to separate from: after an opening bracket or a key
	err  error
}

// NewJSONWriter returns a writer to w.
func NewJSONWriter(w io.Writer) *JSONWriter { return &JSONWriter{w: w, bare: true} }

// Done ends a document and sends what is left. Another one may follow.
func (p *JSONWriter) Done() {
	p.b = append(p.b, '\n')
	p.bare = true
	p.send()
}

func (p *JSONWriter) send() {
	if p.err == nil {
		_, p.err = p.w.Write(p.b)
	}
	p.b = p.b[:0]
}

// Failed tells whether the reader has gone away: go on with nothing.
func (p *JSONWriter) Failed() bool { return p.err != nil }

func (p *JSONWriter) separate() {
	if !p.bare {
		p.b = append(p.b, ',')
	}
	p.bare = false
}

// Open begins an object ('{') or a list ('[').
func (p *JSONWriter) Open(bracket byte) {
	p.separate()
	p.b = append(p.b, bracket)
	p.bare = true
}

// Close ends it.
func (p *JSONWriter) Close(bracket byte) {
	p.b = append(p.b, bracket)
	p.bare = false
	if len(p.b) >= sendSize {
		p.send()
	}
}

// Key begins a field; its value follows.
func (p *JSONWriter) Key(name string) {
	p.text(name)
	p.b = append(p.b, ':')
	p.bare = true
}

// Value writes anything.
func (p *JSONWriter) Value(v any) {
	text, err := json.Marshal(v)
	if err != nil && p.err == nil {
		p.err = err
		return
	}
	p.separate()
	p.b = append(p.b, text...)
	if len(p.b) >= sendSize {
		p.send()
	}
}

// Field writes a field with anything.
func (p *JSONWriter) Field(name string, v any) {
	p.Key(name)
	p.Value(v)
}

// text writes a string in quotes as an element.
func (p *JSONWriter) text(s string) {
	p.separate()
	if !isPlain(s) {
		text, _ := json.Marshal(s) // it never fails for a string
		p.b = append(p.b, text...)
		return
	}
	p.b = append(p.b, '"')
	p.b = append(p.b, s...)
	p.b = append(p.b, '"')
}

// asItIs are the bytes that stand for themselves.
var asItIs = func() (out [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		out[c] = !strings.ContainsRune("\"\\<>&", c)
	}
	return out
}()

// isPlain tells whether a string can be in quotes as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if !asItIs[s[i]] {
			return false
		}
	}
	return true
}

// Number writes a number as an element.
func (p *JSONWriter) Number(n int64) {
	p.separate()
	p.b = strconv.AppendInt(p.b, n, 10)
}

// TextField writes a field with a string, unless it is empty.
func (p *JSONWriter) TextField(name, s string) {
	if s != "" {
		p.alwaysField(name, s)
	}
}

// NumberField writes a field with a number, unless it is 0.
func (p *JSONWriter) NumberField(name string, n int64) {
	if n != 0 {
		p.Key(name)
		p.Number(n)
	}
}

func (p *JSONWriter) trueField(name string, b bool) {
	if b {
		p.boolField(name, b)
	}
}

// boolField writes false, too.
func (p *JSONWriter) boolField(name string, b bool) {
	p.Key(name)
	p.separate()
	p.b = strconv.AppendBool(p.b, b)
}

// TimeField writes nanoseconds since 1970.
func (p *JSONWriter) TimeField(name string, t time.Time) {
	if !t.IsZero() {
		p.NumberField(name, t.UnixNano())
	}
}

// TextsField writes a field with a list of strings, unless it is empty.
func (p *JSONWriter) TextsField(name string, list []string) {
	if len(list) == 0 {
		return
	}
	p.Key(name)
	p.Open('[')
	for _, s := range list {
		p.text(s)
	}
	p.Close(']')
}

func (p *JSONWriter) amountsField(name string, v resources.Vector) { p.quotaField(name, v.All()) }

// quotaField writes numbers by name, zeros too; nothing where there are no names.
func (p *JSONWriter) quotaField(name string, numbers iter.Seq2[string, resources.Amount]) {
	some := false
	for of, amount := range numbers {
		if !some {
			some = true
			p.Key(name)
			p.Open('{')
		}
		p.Key(of)
		p.Number(int64(amount))
	}
	if some {
		p.Close('}')
	}
}

// alwaysField writes a text, also an empty one.
func (p *JSONWriter) alwaysField(name, s string) {
	p.Key(name)
	p.text(s)
}
