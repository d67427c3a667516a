package rest

import (
	"bytes"
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

// page writes JSON as it is made: an answer about 20,000 pods is never in memory
// as a whole. The zero value of a field is left out, as YuniKorn does, unless the
// name of the method says otherwise.
type page struct {
	w     io.Writer
	b     []byte
	bare  bool // nothing to separate from: after an opening bracket or a key
	err   error
	words []word // scratch
	apart *page  // for what is written apart from the rest; nil before that
}

func newPage(w io.Writer) *page { return &page{w: w, bare: true} }

// done sends what is left.
func (p *page) done() error {
	p.b = append(p.b, '\n')
	p.send()
	return p.err
}

func (p *page) send() {
	if p.w == nil {
		return // it is taken from b
	}
	if p.err == nil {
		_, p.err = p.w.Write(p.b)
	}
	p.b = p.b[:0]
}

// written is what write writes, on its own.
func (p *page) written(write func(p *page)) []byte {
	if p.apart == nil {
		p.apart = &page{}
	}
	p.apart.b, p.apart.bare = p.apart.b[:0], true
	write(p.apart)
	return bytes.Clone(p.apart.b)
}

// ready writes a value that was written before.
func (p *page) ready(text []byte) {
	p.separate()
	p.b = append(p.b, text...)
	if len(p.b) >= pageSize {
		p.send()
	}
}

// failed tells whether the reader has gone away: go on with nothing.
func (p *page) failed() bool { return p.err != nil }

func (p *page) separate() {
	if !p.bare {
		p.b = append(p.b, ',')
	}
	p.bare = false
}

// open begins an object ('{') or a list ('[').
func (p *page) open(bracket byte) {
	p.separate()
	p.b = append(p.b, bracket)
	p.bare = true
}

// close ends it.
func (p *page) close(bracket byte) {
	p.b = append(p.b, bracket)
	p.bare = false
	if len(p.b) >= pageSize {
		p.send()
	}
}

// key begins a field; its value follows. Keys are plain words.
func (p *page) key(name string) {
	p.separate()
	p.b = append(p.b, '"')
	p.b = append(p.b, name...)
	p.b = append(p.b, '"', ':')
	p.bare = true
}

// value writes anything.
func (p *page) value(v any) {
	text, err := json.Marshal(v)
	if err != nil && p.err == nil {
		p.err = err
		return
	}
	p.ready(text)
}

// field writes a field with anything.
func (p *page) field(name string, v any) {
	p.key(name)
	p.value(v)
}

func (p *page) text(s string) {
	p.separate()
	p.quote(s)
}

// quote writes a string in quotes.
func (p *page) quote(s string) {
	if !plain(s) {
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

// asItIs are the bytes that stand for themselves.
var asItIs = func() (out [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		out[c] = !strings.ContainsRune("\"\\<>&", c)
	}
	return out
}()

// plain tells whether a string can be in quotes as it is.
func plain(s string) bool {
	for i := range len(s) {
		if !asItIs[s[i]] {
			return false
		}
	}
	return true
}

func (p *page) number(n int64) {
	p.separate()
	p.b = strconv.AppendInt(p.b, n, 10)
}

func (p *page) textField(name, s string) {
	if s != "" {
		p.key(name)
		p.text(s)
	}
}

func (p *page) numberField(name string, n int64) {
	if n != 0 {
		p.key(name)
		p.number(n)
	}
}

func (p *page) trueField(name string, b bool) {
	if b {
		p.boolField(name, b)
	}
}

// boolField writes false, too.
func (p *page) boolField(name string, b bool) {
	p.key(name)
	p.separate()
	p.b = strconv.AppendBool(p.b, b)
}

// timeField writes nanoseconds since 1970.
func (p *page) timeField(name string, t time.Time) {
	if !t.IsZero() {
		p.numberField(name, t.UnixNano())
	}
}

func (p *page) textsField(name string, list []string) {
	if len(list) == 0 {
		return
	}
	p.key(name)
	p.open('[')
	for _, s := range list {
		p.text(s)
	}
	p.close(']')
}

func (p *page) amountsField(name string, v resources.Vector) {
	if !v.IsZero() {
		p.key(name)
		p.amounts(v)
	}
}

func (p *page) amounts(v resources.Vector) {
	p.open('{')
	for name, amount := range v.All() {
		p.separate()
		p.quote(name)
		p.b = append(p.b, ':')
		p.b = strconv.AppendInt(p.b, int64(amount), 10)
	}
	p.close('}')
}

// quotaField writes numbers by name, zeros too; nothing where there are no names.
func (p *page) quotaField(name string, numbers iter.Seq2[string, resources.Amount]) {
	some := false
	for of, amount := range numbers {
		if !some {
			some = true
			p.key(name)
			p.open('{')
		}
		p.separate()
		p.quote(of)
		p.b = append(p.b, ':')
		p.b = strconv.AppendInt(p.b, int64(amount), 10)
	}
	if some {
		p.close('}')
	}
}

// alwaysField writes a text, also an empty one.
func (p *page) alwaysField(name, s string) {
	p.key(name)
	p.text(s)
}

// word is an entry of a map.
type word struct{ name, value string }

// sorted are the entries of a map by name, until the next call. Labels are few.
func (p *page) sorted(m map[string]string) []word {
	p.words = p.words[:0]
	for name, value := range m {
		at := len(p.words)
		p.words = append(p.words, word{name, value})
		for ; at > 0 && p.words[at-1].name > name; at-- {
			p.words[at] = p.words[at-1]
		}
		p.words[at] = word{name, value}
	}
	return p.words
}
