package ranking

// Leading returns at most that many of the first items for which the function
// holds, in order, and whether these are all. The function must hold for the first
// items of the order and for none that follow. What it costs grows with what it
// returns, not with the heap.
func (r *Heap[T]) Leading(holds func(T) bool, most int) (leading []T, all bool) {
	frontier := r.below(nil, -1) // places of the items to look at next; those above them are taken
	for len(frontier) > 0 {
		best := 0
		for i := range frontier {
			if r.in.less(r.in.all[frontier[i]], r.in.all[frontier[best]]) {
				best = i
			}
		}
		at, last := frontier[best], len(frontier)-1
		switch {
		case !holds(r.in.all[at]):
			return leading, true
		case len(leading) == most:
			return leading, false
		}
		leading = append(leading, r.in.all[at])
		frontier[best] = frontier[last]
		frontier = r.below(frontier[:last], at)
	}
	return leading, true
}

// below appends the places right below one; the first of all is below -1.
func (r *Heap[T]) below(to []int, at int) []int {
	for next := max(0, 2*at+1); next <= 2*at+2 && next < len(r.in.all); next++ {
		to = append(to, next)
	}
	return to
}
