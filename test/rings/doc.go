// Package rings keeps the architecture from eroding: packages import inwards
// only, the inner rings decide without clock, chance, log, lock and goroutine,
// and no file outgrows its reader. Its tests look at the whole module and need
// nothing but the go command and git; the linter says some of the same earlier.
//
// rings.go is the table: which package is in which ring. imports.go checks the
// graph of imports, source.go the files. patches_test.go looks whether the patches of
// hack/compat, which make compat applies to a copy, fit the files as they are.
package rings
