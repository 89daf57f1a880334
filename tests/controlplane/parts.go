// The parts of a cluster, in one process or apart. Processes of one cluster share a directory: it
// holds their credentials and the address of their etcd.

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	readyLimit = 4 * time.Minute
	readyPoll  = 50 * time.Millisecond
)

// The directory of a cluster.
type cluster string

func (of cluster) at(name string) string { return filepath.Join(string(of), name) }

func (of cluster) credentials() *credentials { return credentialsAt(of.at("credentials")) }

// Of etcd's clients.
func (of cluster) etcd() (string, error) {
	address, err := os.ReadFile(of.at("etcd.address"))
	return string(address), err
}

// Makes the credentials and starts etcd.
func (of cluster) begin() error {
	if err := of.credentials().make(); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	address, err := startEtcd(string(of))
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return os.WriteFile(of.at("etcd.address"), []byte(address), 0o600)
}

// Everything in this process.
func serveAll(ctx context.Context, of cluster) error {
	if err := of.begin(); err != nil {
		return err
	}
	server := apiServer{of: of, directory: string(of), kubeconfig: of.at("kubeconfig")}
	return server.serve(ctx, 0, func(config *rest.Config) error { return startControllers(ctx, config, false) })
}

func serveEtcd(ctx context.Context, of cluster) error {
	if err := of.begin(); err != nil {
		return err
	}
	fmt.Println("ready", of)
	<-ctx.Done()
	return nil
}

// A server of its own: what it keeps lies below the cluster's directory, by its port.
func serveAPIServer(of cluster, port int, more []string) error {
	directory, err := os.MkdirTemp(string(of), "apiserver-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	server := apiServer{of: of, directory: directory, kubeconfig: filepath.Join(directory, "kubeconfig"), more: more}
	return logged(directory, func(ctx context.Context) error {
		return server.serve(ctx, port, func(*rest.Config) error { return nil })
	})
}

func serveControllers(kubeconfig string, migrator bool) error {
	directory, err := os.MkdirTemp(filepath.Dir(kubeconfig), "controllers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	return logged(directory, func(ctx context.Context) error {
		config, err := clientConfig(kubeconfig)
		if err != nil {
			return err
		}
		if err := startControllers(ctx, config, migrator); err != nil {
			return err
		}
		fmt.Println("ready", kubeconfig)
		<-ctx.Done()
		return nil
	})
}

// Serves on a port of loopback until ctx ends. When the server is ready, starts the rest, and only then prints the
// line that callers wait for.
func (server *apiServer) serve(ctx context.Context, port int, startRest func(*rest.Config) error) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	if err := server.of.credentials().writeKubeconfig(server.kubeconfig, listener.Addr().String()); err != nil {
		return err
	}
	failed := make(chan error, 2)
	// With a context of its own: an end in peace would wait for every watch.
	go func() { failed <- server.run(context.Background(), listener) }()
	go func() {
		if err := server.announce(ctx, startRest); err != nil {
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

func (server *apiServer) announce(ctx context.Context, startRest func(*rest.Config) error) error {
	config, err := clientConfig(server.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, client); err != nil {
		return err
	}
	if err := startRest(config); err != nil {
		return err
	}
	fmt.Println("ready", server.kubeconfig)
	return nil
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, -1
	return config, nil
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
