// A Kubernetes control plane for tests: etcd, kube-apiserver and the controllers that deletes
// need, in one process on loopback. When it is ready it prints `ready` and the path of a
// kubeconfig with a context for each user. It ends when its standard input closes, so that it
// never outlives the test that started it, and leaves nothing behind.

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	readyLimit = 4 * time.Minute
	readyPoll  = 50 * time.Millisecond
	// How much of the log is shown when something fails.
	logTail = 4000
)

func main() {
	// The flags of Kubernetes' own packages stay out of sight.
	flags := flag.NewFlagSet("controlplane", flag.ExitOnError)
	parent := flags.String("data-dir", "", "where the directory with the data is made (default: the system's)")
	flags.Parse(os.Args[1:])
	if flags.NArg() != 0 {
		fmt.Fprintf(os.Stderr, "controlplane: unknown argument %q; usage: controlplane [--data-dir DIRECTORY]\n", flags.Arg(0))
		os.Exit(2)
	}
	if err := run(*parent); err != nil {
		fmt.Fprintf(os.Stderr, "controlplane: %v\n", err)
		os.Exit(1)
	}
}

func run(parent string) error {
	directory, err := os.MkdirTemp(parent, "controlplane-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	log, err := os.Create(filepath.Join(directory, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	if err := logTo(log); err != nil {
		return err
	}
	if err := serve(directory); err != nil {
		return fmt.Errorf("%w\nthe end of the log:\n%s", err, tail(log))
	}
	return nil
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

// Runs until the caller goes away or a part fails.
func serve(directory string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	made, err := makeCredentials(filepath.Join(directory, "credentials"))
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	etcd, err := startEtcd(directory)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(directory, "kubeconfig")
	if err := made.writeKubeconfig(kubeconfig, listener.Addr().String()); err != nil {
		return err
	}
	failed := make(chan error, 2)
	// With a context of its own: an end in peace would wait for every watch.
	go func() { failed <- runAPIServer(context.Background(), listener, etcd, directory, made) }()
	go func() {
		if err := announce(ctx, kubeconfig); err != nil {
			failed <- err
		}
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return fmt.Errorf("kube-apiserver: %w", err)
	}
}

// Waits for the server, starts the controllers, and only then prints the line that callers wait for.
func announce(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, client); err != nil {
		return err
	}
	if err := startControllers(ctx, config); err != nil {
		return err
	}
	fmt.Println("ready", kubeconfig)
	return nil
}

// Ready is more than healthy: the namespace that every client uses has to be there.
func awaitReady(ctx context.Context, client kubernetes.Interface) error {
	deadline := time.Now().Add(readyLimit)
	for {
		err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		if err == nil {
			_, err = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		}
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready within %s: %w", readyLimit, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(readyPoll):
		}
	}
}
