// Package documents makes the documents of the REST interface: what YuniKorn's scripts and
// web pages expect below /ws/v1, and what is below /api/v1.
//
// Queues, nodes, applications and pods of a document are read from one view of the
// inventory. Why a pod waits is asked when the document is written and may be newer.
// json_writer.go writes JSON while it is made; answer.go writes whole answers and problems.
package documents
