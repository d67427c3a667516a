package web

import "strconv"

// pager says which part of a list is shown, and where the others are.
type pager struct {
	// First and Last are the numbers of what is shown, from 1; Total is how many there are.
	First, Last, Total int
	// Thing is what they are, one of them.
	Thing string
	// Page is the number of this page, of so many.
	Page, Pages int
	// Previous and Next are addresses; empty where there is none.
	Previous, Next string
	// from and to are the same for a slice.
	from, to int
}

// cut says which part of a list the request is for: the n-th so many. A page after
// the last is the last.
func (r *request) cut(parameter, thing string, total, size int) pager {
	pages := max((total+size-1)/size, 1)
	page := min(r.number(parameter), pages)
	p := pager{Total: total, Thing: thing, Page: page, Pages: pages}
	p.from = (page - 1) * size
	p.to = min(p.from+size, total)
	p.First, p.Last = p.from+1, p.to
	if page > 1 {
		p.Previous = r.again(parameter, strconv.Itoa(page-1))
	}
	if page < pages {
		p.Next = r.again(parameter, strconv.Itoa(page+1))
	}
	return p
}

// Says is what is shown, as a sentence.
func (p pager) Says() string {
	all := count(p.Total, p.Thing)
	switch {
	case p.Total == 0:
		return "no " + p.Thing + "s"
	case p.Pages == 1:
		return all
	}
	return thousands(int64(p.First)) + " to " + thousands(int64(p.Last)) + " of " + all
}
