// A Kubernetes control plane for tests: etcd, kube-apiserver and the controllers that deletes
// need, in one process on loopback, or each in a process of its own. A process that is ready prints
// `ready` and where its cluster is found. It ends when its standard input closes, so that it never
// outlives the test that started it, and leaves nothing behind.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/klog/v2"
)

// How much of the log is shown when something fails.
const logTail = 4000

const usage = `usage:
  controlplane [--data-dir DIRECTORY]                      etcd, kube-apiserver and controllers; prints a kubeconfig
  controlplane etcd [--data-dir DIRECTORY]                 etcd and credentials; prints the directory of the cluster
  controlplane apiserver --cluster DIRECTORY [--port PORT] [-- FLAG…]
                                                           a kube-apiserver with these flags; prints a kubeconfig
  controlplane controllers --kubeconfig FILE [--storage-version-migrator]
                                                           the controllers; prints the kubeconfig
  controlplane get --cluster DIRECTORY PREFIX              what etcd holds below a key, an object of JSON a line
  controlplane compact --cluster DIRECTORY                 makes etcd forget every revision but the newest
`

// One of the programs above.
type command struct {
	flags *flag.FlagSet
	// Positional arguments; -1: any number.
	arguments int
	run       func(arguments []string) error
}

func main() {
	name, arguments := "", os.Args[1:]
	if len(arguments) != 0 && arguments[0] != "" && arguments[0][0] != '-' {
		name, arguments = arguments[0], arguments[1:]
	}
	chosen := commandOf(name)
	if chosen == nil {
		fmt.Fprintf(os.Stderr, "controlplane: unknown command %q\n%s", name, usage)
		os.Exit(2)
	}
	chosen.flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	// The flags of Kubernetes' own packages stay out of sight.
	chosen.flags.Parse(arguments)
	if chosen.arguments >= 0 && chosen.flags.NArg() != chosen.arguments {
		fmt.Fprintf(os.Stderr, "controlplane %s: %d arguments instead of %d\n%s",
			name, chosen.flags.NArg(), chosen.arguments, usage)
		os.Exit(2)
	}
	if err := chosen.run(chosen.flags.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "controlplane: %v\n", err)
		os.Exit(1)
	}
}

func commandOf(name string) *command {
	flags := flag.NewFlagSet("controlplane", flag.ExitOnError)
	parent := func() *string {
		return flags.String("data-dir", "", "where the directory with the data is made (default: the system's)")
	}
	of := func() *string { return flags.String("cluster", "", "the directory that `controlplane etcd` printed") }
	switch name {
	case "":
		parent := parent()
		return &command{flags, 0, func([]string) error { return inDirectory(*parent, serveAll) }}
	case "etcd":
		parent := parent()
		return &command{flags, 0, func([]string) error { return inDirectory(*parent, serveEtcd) }}
	case "apiserver":
		of, port := of(), flags.Int("port", 0, "where it listens on loopback (default: any that is free)")
		return &command{flags, -1, func(more []string) error { return serveAPIServer(cluster(*of), *port, more) }}
	case "controllers":
		kubeconfig := flags.String("kubeconfig", "", "how the API server is reached")
		migrator := flags.Bool("storage-version-migrator", false, "run the migrator of storagemigration.k8s.io as well")
		return &command{flags, 0, func([]string) error { return serveControllers(*kubeconfig, *migrator) }}
	case "get":
		of := of()
		return &command{flags, 1, func(prefix []string) error { return get(cluster(*of), prefix[0], os.Stdout) }}
	case "compact":
		of := of()
		return &command{flags, 0, func([]string) error { return compact(cluster(*of)) }}
	}
	return nil
}

// Runs what needs a directory in a new one, which goes with it.
func inDirectory(parent string, serve func(context.Context, cluster) error) error {
	directory, err := os.MkdirTemp(parent, "controlplane-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	return logged(directory, func(ctx context.Context) error { return serve(ctx, cluster(directory)) })
}

// Runs until the caller goes away or serve fails, with a log in directory, whose end an error shows.
func logged(directory string, serve func(context.Context) error) error {
	log, err := os.Create(filepath.Join(directory, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	if err := logTo(log); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	err = serve(ctx)
	if err == nil || (ctx.Err() != nil && errors.Is(err, ctx.Err())) {
		return nil
	}
	return fmt.Errorf("%w\nthe end of the log:\n%s", err, tail(log))
}

func logTo(log io.Writer) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"--logtostderr=false", "--alsologtostderr=false", "--stderrthreshold=FATAL"}); err != nil {
		return err
	}
	klog.SetOutput(log)
	return nil
}

func tail(log *os.File) []byte {
	klog.Flush()
	length, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil
	}
	text := make([]byte, min(length, logTail))
	// What cannot be read is not shown.
	_, _ = log.ReadAt(text, length-int64(len(text)))
	return text
}
