// Package rest serves what is: read-only HTTP in the form of YuniKorn's REST
// interface (/ws/v1), so that its scripts and its web pages work unchanged. What is
// served and what is not, and why, is in docs/rest.md.
//
// Every answer is made from one view of the inventory, so everything in it is of
// one moment, and no lock is held while it is made or read. The health checks look at
// everything in the same way, on a goroutine of their own, and rest in proportion:
// readers are told what they found last.
//
//   - routes.go has the routes, and server.go serves them. Each answers with a document
//     of package documents, the short ones in pages.go, except health.go and the log below.
//     What YuniKorn does not have is below /api/v1.
//   - events.go and stream.go show what happened, from the log of package eventlog.
//   - inflight.go bounds how many answers are made at a time, and compresses them;
//     cache.go keeps large ones for a moment. limits.go, connections.go and hosts.go bound
//     the connections, and guard.go which users may read.
package rest
