// Package docs runs every command of README.md and docs/*.md on a real API server, with
// kubectl and helm built from source and a running scheduler of ours.
//
// A command is a line of a block marked sh, or a span of code that begins with the name of a program
// (extract_test.go). Each is run as it is written, in a directory that looks like the root of this
// repository and has the files of testdata, with the commands that a rule puts around it
// (rules_test.go). Commands that take minutes are only matched with a rule at every change, and run by
// the nightly run (rules_long_test.go). The few commands that are run with fewer rounds, or are parts
// of others, or only names, are counted by kind, and docs/nightly.md says how many of each there may
// be; every command must be run in some way (kinds_test.go). A program that is not installed here must
// have a rule. A program that extract_test.go does not list is found in blocks only, not in sentences.
//
// A block marked text after a command is its output and is compared; -rewrite writes the actual output:
//
//	go test ./test/integration/docs -args -rewrite
//
// stage_test.go has the cluster that the pages describe: queues, one pod for each lasting reason to wait,
// and another scheduler that authenticates its clients.
package docs
