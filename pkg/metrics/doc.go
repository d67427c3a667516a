// Package metrics registers our metrics with component-base, so that they are
// on the scheduler's own /metrics beside upstream's.
package metrics
