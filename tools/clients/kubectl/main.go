// Command kubectl is upstream's kubectl, built from source, so that the commands of
// the documentation can be tried wherever the tests run.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // pretty-prints it and ends the process
		os.Exit(1)
	}
}
