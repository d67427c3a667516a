// Package docs runs every command of README.md and docs/*.md on a real API server,
// with kubectl and helm built from source and a scheduler of ours that is at work.
//
// A command is a line of a block marked sh, or a span of code that begins with the
// name of a program (extract_test.go). Each is run as it is written, in a directory that
// looks like the root of this repository and has the files of testdata, with what a rule
// puts around it (rules_test.go). What takes minutes is looked up with every change, and
// run by the nightly run (rules_long_test.go). The few that are run with fewer rounds, or are
// parts of others, or names, are counted by kind, and docs/nightly.md says how many there
// may be; there may be none that nothing runs (kinds_test.go). Programs that are not here
// have to have a rule; one whose name extract_test.go does not list is not seen in a
// sentence, but is in a block.
//
// What follows a command in a block marked text is its output and is compared; -rewrite
// writes what it is:
//
//	go test ./test/integration/docs -args -rewrite
//
// stage_test.go has the cluster in which the pages take place: queues, and one pod for
// each reason to wait that lasts; secure_test.go another scheduler there, which wants to
// know who asks it.
package docs
