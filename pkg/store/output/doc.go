// Package output has what the store gives out: events and records for readers, the inputs
// of plans, steps and work for the executor, and reports for users. Package objects has
// what callers tell the store.
package output
