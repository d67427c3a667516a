package state

// Table is the table of transitions, as the doc comment of package store has it.
func Table() string { return table.String() }
