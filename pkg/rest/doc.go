// Package rest serves what is: read-only HTTP in the form of YuniKorn's REST
// interface (/ws/v1), so that its scripts and its web pages work unchanged. What is
// served and what is not, and why, is in docs/rest.md.
//
// Every answer is made from one view of the inventory, so everything in it is of
// one moment, and no lock is held while it is made or read. The health checks look at
// everything in the same way, on a goroutine of their own, and rest in proportion:
// readers are told what they found last.
package rest
