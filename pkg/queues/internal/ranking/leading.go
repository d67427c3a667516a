package ranking

// Leading returns at most that many of the first items for which the function
// holds, in order, and whether these are all. The function must hold for the first
// items of the order and for none that follow. What it costs grows with what it
// returns, not with the heap.
func (r *Heap[T]) Leading(holds func(T) bool, most int) (leading []T, all bool) {
	var frontier []int // places whose item is next to be looked at; those above them are taken
	if len(r.items) > 0 {
		frontier = append(frontier, 0)
	}
	for len(frontier) > 0 {
		best := 0
		for i := range frontier {
			if r.Less(frontier[i], frontier[best]) {
				best = i
			}
		}
		at := frontier[best]
		if !holds(r.items[at]) {
			return leading, true
		}
		if len(leading) == most {
			return leading, false
		}
		leading = append(leading, r.items[at])
		frontier[best] = frontier[len(frontier)-1]
		frontier = frontier[:len(frontier)-1]
		for _, below := range []int{2*at + 1, 2*at + 2} {
			if below < len(r.items) {
				frontier = append(frontier, below)
			}
		}
	}
	return leading, true
}
