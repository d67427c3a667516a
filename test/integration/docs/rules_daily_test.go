//go:build !nightly

package docs

// nightly is true in the nightly run.
const nightly = false
