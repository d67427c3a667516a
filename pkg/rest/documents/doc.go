// Package documents makes the documents of the REST interface: what YuniKorn's scripts and
// web pages expect below /ws/v1, and what is below /api/v1.
//
// Each function reads one view of the inventory, so everything in a document is of one
// moment. page.go writes JSON while it is made; answer.go writes whole answers and
// problems.
package documents
