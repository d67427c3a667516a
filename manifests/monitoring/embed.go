// Package monitoring carries the dashboard and the alerts that are shipped, so
// that tests read the very files that users read.
package monitoring

import _ "embed"

// Dashboard is dashboard.json, for Grafana.
//
//go:embed dashboard.json
var Dashboard []byte

// Rules is rules.yaml, a rule file of Prometheus.
//
//go:embed rules.yaml
var Rules []byte
