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

// pageSize is how much of an answer is collected before it is sent.
const pageSize = 32 << 10

// Page writes JSON as it is made: an answer about 20,000 pods is never in memory
// as a whole. The zero value of a field is left out, as YuniKorn does, unless the
// name of the method says otherwise.
type Page struct {
	w    io.Writer
	b    []byte
	bare bool // nothing to separate from: after an opening bracket or a key
	err  error
}

// NewPage returns a page that is written to w.
func NewPage(w io.Writer) *Page { return &Page{w: w, bare: true} }

// Done sends what is left.
func (p *Page) Done() error {
	p.b = append(p.b, '\n')
	p.send()
	return p.err
}

func (p *Page) send() {
	if p.err == nil {
		_, p.err = p.w.Write(p.b)
	}
	p.b = p.b[:0]
}

// Failed tells whether the reader has gone away: go on with nothing.
func (p *Page) Failed() bool { return p.err != nil }

func (p *Page) separate() {
	if !p.bare {
		p.b = append(p.b, ',')
	}
	p.bare = false
}

// Open begins an object ('{') or a list ('[').
func (p *Page) Open(bracket byte) {
	p.separate()
	p.b = append(p.b, bracket)
	p.bare = true
}

// Close ends it.
func (p *Page) Close(bracket byte) {
	p.b = append(p.b, bracket)
	p.bare = false
	if len(p.b) >= pageSize {
		p.send()
	}
}

// Key begins a field; its value follows. Keys are plain words.
func (p *Page) Key(name string) {
	p.separate()
	p.b = append(p.b, '"')
	p.b = append(p.b, name...)
	p.b = append(p.b, '"', ':')
	p.bare = true
}

// Value writes anything.
func (p *Page) Value(v any) {
	text, err := json.Marshal(v)
	if err != nil && p.err == nil {
		p.err = err
		return
	}
	p.separate()
	p.b = append(p.b, text...)
	if len(p.b) >= pageSize {
		p.send()
	}
}

// Field writes a field with anything.
func (p *Page) Field(name string, v any) {
	p.Key(name)
	p.Value(v)
}

func (p *Page) text(s string) {
	p.separate()
	p.quote(s)
}

// quote writes a string in quotes.
func (p *Page) quote(s string) {
	if !IsPlain(s) {
		text, err := json.Marshal(s)
		if err != nil && p.err == nil {
			p.err = err
		}
		p.b = append(p.b, text...)
		return
	}
	p.b = append(p.b, '"')
	p.b = append(p.b, s...)
	p.b = append(p.b, '"')
}

// AsItIs are the bytes that stand for themselves.
var AsItIs = func() (out [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		out[c] = !strings.ContainsRune("\"\\<>&", c)
	}
	return out
}()

// IsPlain tells whether a string can be in quotes as it is.
func IsPlain(s string) bool {
	for i := range len(s) {
		if !AsItIs[s[i]] {
			return false
		}
	}
	return true
}

// Number writes a number as an element.
func (p *Page) Number(n int64) {
	p.separate()
	p.b = strconv.AppendInt(p.b, n, 10)
}

// TextField writes a field with a string, unless it is empty.
func (p *Page) TextField(name, s string) {
	if s != "" {
		p.Key(name)
		p.text(s)
	}
}

// NumberField writes a field with a number, unless it is 0.
func (p *Page) NumberField(name string, n int64) {
	if n != 0 {
		p.Key(name)
		p.Number(n)
	}
}

func (p *Page) trueField(name string, b bool) {
	if b {
		p.boolField(name, b)
	}
}

// boolField writes false, too.
func (p *Page) boolField(name string, b bool) {
	p.Key(name)
	p.separate()
	p.b = strconv.AppendBool(p.b, b)
}

// TimeField writes nanoseconds since 1970.
func (p *Page) TimeField(name string, t time.Time) {
	if !t.IsZero() {
		p.NumberField(name, t.UnixNano())
	}
}

// TextsField writes a field with a list of strings, unless it is empty.
func (p *Page) TextsField(name string, list []string) {
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

func (p *Page) amountsField(name string, v resources.Vector) { p.quotaField(name, v.All()) }

// quotaField writes numbers by name, zeros too; nothing where there are no names.
func (p *Page) quotaField(name string, numbers iter.Seq2[string, resources.Amount]) {
	some := false
	for of, amount := range numbers {
		if !some {
			some = true
			p.Key(name)
			p.Open('{')
		}
		p.separate()
		p.quote(of)
		p.b = append(p.b, ':')
		p.b = strconv.AppendInt(p.b, int64(amount), 10)
	}
	if some {
		p.Close('}')
	}
}

// alwaysField writes a text, also an empty one.
func (p *Page) alwaysField(name, s string) {
	p.Key(name)
	p.text(s)
}
