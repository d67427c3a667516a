package main

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"
)

// version is the version of this project. The build sets it; it is not to be
// confused with the version of Kubernetes that the binary is built from, which
// decides about feature gates and is stamped into component-base.
var version = "unknown"

// printVersion prints our version if --version was given. Upstream's flag then
// prints that of Kubernetes and ends the process.
func printVersion(out io.Writer, flags *pflag.FlagSet) error {
	switch flag := flags.Lookup("version"); flag.Value.String() {
	case "true", "raw":
		_, err := fmt.Fprintf(out, "Paddock %s\n", version)
		return err
	}
	return nil
}
