package state

// Drawing is the table as a doc comment shows it.
func Drawing() string { return table.String() }
