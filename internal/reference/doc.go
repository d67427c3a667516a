// Package reference makes docs/configuration.md: every argument of the plugins,
// every key of queues.yaml, and every label and annotation that is read.
//
// The arguments are read from the source of apis/config/v1, where the comment of a
// field says what it means, its default and its bounds (arguments.go). Keys,
// properties, labels and annotations stand in tables here (queues.go, metadata.go),
// which tests hold against what the parser of queues.yaml really knows and does and
// against the names in the source. page.go writes it all down.
//
//	go test ./internal/reference -rewrite
//
// Tests beside it look after the other pages: every link leads somewhere and README.md to
// every page (links_test.go), every ruling that departs from YuniKorn is on the migration
// page (departures_test.go), every alert has an answer (alerts_test.go).
package reference
