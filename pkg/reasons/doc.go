// Package reasons is the closed list of reasons for which a pod does not run, and
// of the few warnings about something that was asked for and is not there.
//
// A refusal is a [Reason]: a code for machines and a sentence for people. The
// same two appear in the pod's condition and event, in REST and in the command
// line tool, because all of them take both from here. The table in table.go is
// also what the troubleshooting page, docs/reasons.md, is made from: every code
// has what it means and what to do about it.
package reasons
