// Package monitoring holds the shipped dashboard and alerts against what the
// scheduler exports, with Prometheus' own parser. It is a module of its own, so that
// the scheduler need not share Prometheus' dependencies.
//
// What is exported is read from docs/metrics.md, whose list pkg/metrics makes and
// holds against the registry, and, of YuniKorn's names, from the page that pkg/metrics
// holds against what it writes.
package monitoring
