// Command kubectl is the published kubectl as a Go module, for machines that have
// Go but no kubectl package. The tests drive the embedded cluster with it.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	os.Exit(cli.Run(cmd.NewDefaultKubectlCommand()))
}
