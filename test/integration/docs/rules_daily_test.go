//go:build !nightly

package docs

// inFull is what the nightly run does with commands that take minutes.
var inFull []rule
