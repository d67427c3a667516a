package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// printVersion prints our version if --version was given. Upstream's flag then prints that
// of Kubernetes, which decides about feature gates, and ends the process.
func printVersion(out io.Writer, flags *pflag.FlagSet) error {
	if value := flags.Lookup("version").Value.String(); value != "true" && value != "raw" {
		return nil
	}
	_, err := fmt.Fprintf(out, "Paddock %s\n", cmp.Or(documents.BuildVersion, "unknown"))
	return err
}
