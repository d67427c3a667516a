package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
)

// longestValue is how many bytes of a parameter are read: more than any name has.
const longestValue = 512

// request has everything that a page is made from.
type request struct {
	*inventory.View
	now    time.Time
	page   string // its path below the root, without a slash
	values url.Values
	taint  func(node string) string // see [Options]
}

// text is a parameter without the blanks around it; empty for none.
func (r *request) text(name string) string {
	v := r.values.Get(name)
	return strings.TrimSpace(strings.ToValidUTF8(v[:min(len(v), longestValue)], ""))
}

// number is a parameter that counts from 1; 1 where it is none.
func (r *request) number(name string) int {
	n, err := strconv.Atoi(r.text(name))
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// choice is one of the values of a parameter.
type choice struct {
	Value, Label string
	Chosen       bool
}

// choose reads a parameter that has one of a few values; the first where it has none of
// them. It also returns the choices with the one that was made.
func (r *request) choose(name string, choices []choice) (string, []choice) {
	given := r.text(name)
	at := max(slices.IndexFunc(choices, func(c choice) bool { return c.Value == given }), 0)
	choices = slices.Clone(choices)
	choices[at].Chosen = true
	return choices[at].Value, choices
}

// link is the address of a page with parameters, relative to any page: the server
// may be reached below some path of a proxy. Parameters that are empty are left out.
func link(page string, parameters ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			values.Set(parameters[i], parameters[i+1])
		}
	}
	address := "./" + page
	if query := values.Encode(); query != "" {
		address += "?" + query
	}
	return address
}

// again is the address of this page with one parameter changed.
func (r *request) again(parameter, value string) string {
	var parameters []string
	for name := range r.values {
		if name != parameter {
			parameters = append(parameters, name, r.text(name))
		}
	}
	return link(r.page, append(parameters, parameter, value)...)
}
