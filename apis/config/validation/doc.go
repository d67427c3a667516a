// Package validation checks plugin arguments after decoding and defaulting. Each
// function reports every mistake at once, so that an administrator edits the
// file once, and each mistake names its field and what is allowed.
package validation
