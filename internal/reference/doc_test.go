// Package reference has tests only. They make docs/configuration.md: every argument of the
// plugins, every key of queues.yaml, and every label and annotation that is read.
//
// The arguments are read from the source of apis/config, where the comment of a field
// has its meaning, its default and its bounds (readarguments_test.go). Keys, properties,
// labels and annotations are in tables here (sections_test.go, metadata_test.go), which
// tests compare with the parser of queues.yaml and with the names in the source.
// makepage_test.go writes the page.
//
//	go test ./internal/reference -rewrite
//
// Tests beside it check the other pages: every link has a target and README.md links to
// every page (links_test.go), every ruling that departs from YuniKorn is on the migration
// page (departures_test.go), every alert has an answer (links_test.go).
package reference
