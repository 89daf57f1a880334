// etcd and kube-apiserver, as their own programs would start them, in this process.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

const etcdStartLimit = 4 * time.Minute

// Starts etcd on a free port and returns the address of its clients. Nothing has to outlive the
// process, so nothing waits for the disk.
func startEtcd(directory string) (string, error) {
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Dir = filepath.Join(directory, "etcd")
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.EnableGRPCGateway = false
	config.LogLevel = "error"
	config.LogOutputs = []string{filepath.Join(directory, "etcd.log")}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return "", err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return "http://" + etcd.Clients[0].Addr().String(), nil
	case err := <-etcd.Err():
		return "", err
	case <-time.After(etcdStartLimit):
		return "", fmt.Errorf("not ready within %s", etcdStartLimit)
	}
}

// One kube-apiserver of a cluster.
type apiServer struct {
	of cluster
	// Of its own.
	directory  string
	kubeconfig string
	// Flags beyond those that every server here has.
	more []string
}

// Serves on listener until ctx ends.
func (one *apiServer) run(ctx context.Context, listener net.Listener) error {
	server := options.NewServerRunOptions()
	server.SecureServing.Listener = listener
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	named := server.Flags()
	for _, set := range named.FlagSets {
		flags.AddFlagSet(set)
	}
	etcd, err := one.of.etcd()
	if err != nil {
		return err
	}
	shared := apiServerFlags(listener, etcd, one.directory, one.of.credentials())
	if err := flags.Parse(append(shared, one.more...)); err != nil {
		return err
	}
	if err := server.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	completed, err := server.Complete(ctx)
	if err != nil {
		return err
	}
	if mistakes := completed.Validate(); len(mistakes) != 0 {
		return utilerrors.NewAggregate(mistakes)
	}
	if err := app.Run(ctx, completed); err != nil {
		return err
	}
	return errors.New("ended by itself")
}

func apiServerFlags(listener net.Listener, etcd, directory string, made *credentials) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--secure-port=" + strconv.Itoa(listener.Addr().(*net.TCPAddr).Port),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + filepath.Join(directory, "certificates"),
		"--tls-cert-file=" + made.certificate,
		"--tls-private-key-file=" + made.key,
		"--token-auth-file=" + made.tokens,
		"--authorization-mode=RBAC",
		"--requestheader-client-ca-file=" + made.authority,
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + made.proxyCertificate,
		"--proxy-client-key-file=" + made.proxyKey,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + made.accountKey,
		"--service-account-signing-key-file=" + made.accountKey,
		"--service-cluster-ip-range=10.0.0.0/24",
		// Nothing here makes service accounts by itself, and pods never run.
		"--disable-admission-plugins=ServiceAccount",
		"--enable-priority-and-fairness=false",
		"--profiling=false",
	}
}
