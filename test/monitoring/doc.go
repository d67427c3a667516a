// Package monitoring checks the shipped dashboard and alerts against the exported metrics
// of the scheduler, with Prometheus' own parser. It is a module of its own, so that the
// scheduler need not share Prometheus' dependencies.
//
// What is exported is read from docs/metrics.md; pkg/metrics generates its list and
// compares it with the registry. The metrics with YuniKorn's names are read from the page
// that pkg/metrics compares with its output.
package monitoring
