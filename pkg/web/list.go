package web

import "strconv"

// pager is the part of a list that a page shows, with links to the other parts.
type pager struct {
	// First and Last are the numbers of the shown items, from 1; Total is the length of
	// the list.
	First, Last, Total int
	// Thing is the word for one item.
	Thing string
	// Pages is the number of parts.
	Pages int
	// Previous and Next are addresses; empty where there is none.
	Previous, Next string
}

// cut returns the part of a list that the request is for. A page number after the last page
// gives the last page.
func cut[T any](r *request, parameter, thing string, list []T, size int) ([]T, pager) {
	pages := max((len(list)+size-1)/size, 1)
	page := min(r.number(parameter), pages)
	from, to := (page-1)*size, min(page*size, len(list))
	p := pager{Total: len(list), Thing: thing, Pages: pages, First: from + 1, Last: to}
	if page > 1 {
		p.Previous = r.again(parameter, strconv.Itoa(page-1))
	}
	if page < pages {
		p.Next = r.again(parameter, strconv.Itoa(page+1))
	}
	return list[from:to], p
}

// Says describes the shown part in a sentence.
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
