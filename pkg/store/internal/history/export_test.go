package history

// Len is the number of events that are kept.
func (l *Events) Len() int { return len(l.list) }
