// Package reference has tests only. They check docs/configuration.md: every argument of the
// plugins, every key of queues.yaml, and every label and annotation that is read.
//
// The lists of arguments are made from the source of apis/config, where the comment of a
// field has its meaning, its default and its bounds (readarguments_test.go, page_test.go):
//
//	go test ./internal/reference -rewrite
//
// The rest of the page is written by hand. Its keys, properties, labels and annotations
// are compared with the parser of queues.yaml and with the names in the source
// (queues_test.go).
//
// Tests beside it check the other pages (links_test.go): every link has a target and README.md
// links to every page, every ruling that departs from YuniKorn is on the migration page, and
// every alert has an answer.
package reference
