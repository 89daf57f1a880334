// What proves who is who: certificates, keys of service accounts, tokens and kubeconfig, all made
// at start and worth nothing after the end.

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Who may log in. Only admin may do anything; the rights of the others are for tests to grant.
var users = []struct{ name, groups string }{
	{"admin", "system:masters"},
	{"alice", "team-a"},
	{"bob", "team-b"},
	{"carol", ""},
}

// The name of kube-apiserver as a proxy, as kubeadm has it.
const frontProxy = "front-proxy-client"

// Paths, in a directory that the processes of a cluster share.
type credentials struct {
	authority, certificate, key, accountKey, tokens string
	proxyCertificate, proxyKey                      string
	// A kubeconfig that lacks the address of a server.
	contexts string
}

func credentialsAt(directory string) *credentials {
	at := func(name string) string { return filepath.Join(directory, name) }
	return &credentials{
		authority:   at("ca.crt"),
		certificate: at("server.crt"),
		key:         at("server.key"),
		accountKey:  at("accounts.key"),
		tokens:      at("tokens.csv"),

		proxyCertificate: at("proxy.crt"),
		proxyKey:         at("proxy.key"),

		contexts: at("contexts"),
	}
}

// Makes all of them anew.
func (made *credentials) make() error {
	if err := os.MkdirAll(filepath.Dir(made.authority), 0o700); err != nil {
		return err
	}
	authority, err := made.makeCertificates()
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	accountKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(made.accountKey, accountKey); err != nil {
		return err
	}
	return made.makeTokens(authority)
}

// Returns the certificate of their authority.
func (made *credentials) makeCertificates() ([]byte, error) {
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "kindex-test-authority"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(0, 0, 7),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	text, err := sign(made.authority, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost", "kubernetes.default.svc"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if _, err = sign(made.certificate, server, authority, serverKey.Public(), authorityKey); err != nil {
		return nil, err
	}
	if err := writeKey(made.key, serverKey); err != nil {
		return nil, err
	}
	return text, made.makeProxy(authority, authorityKey)
}

// What kube-apiserver shows to the servers to which it passes requests on. Its authority is that of all the others
// here, so that the name alone tells it from them.
func (made *credentials) makeProxy(authority *x509.Certificate, authorityKey *ecdsa.PrivateKey) error {
	proxy := &x509.Certificate{
		SerialNumber: big.NewInt(3),
		Subject:      pkix.Name{CommonName: frontProxy},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if _, err = sign(made.proxyCertificate, proxy, authority, key.Public(), authorityKey); err != nil {
		return err
	}
	return writeKey(made.proxyKey, key)
}

func sign(path string, what, by *x509.Certificate, key crypto.PublicKey, with crypto.Signer) ([]byte, error) {
	bytes, err := x509.CreateCertificate(rand.Reader, what, by, key, with)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: bytes})
	return text, os.WriteFile(path, text, 0o600)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	bytes, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: bytes}), 0o600)
}

// A token and a context for each user, named like the user; admin's is the current one.
func (made *credentials) makeTokens(authority []byte) error {
	config := api.NewConfig()
	config.CurrentContext = "admin"
	config.Clusters["test"] = &api.Cluster{CertificateAuthorityData: authority}
	var lines strings.Builder
	for _, user := range users {
		token := rand.Text()
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", token, user.name, user.name, user.groups)
		config.AuthInfos[user.name] = &api.AuthInfo{Token: token}
		config.Contexts[user.name] = &api.Context{Cluster: "test", AuthInfo: user.name}
	}
	if err := os.WriteFile(made.tokens, []byte(lines.String()), 0o600); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, made.contexts)
}

// A kubeconfig with those contexts, for the server at address.
func (made *credentials) writeKubeconfig(path, address string) error {
	config, err := clientcmd.LoadFromFile(made.contexts)
	if err != nil {
		return err
	}
	config.Clusters["test"].Server = "https://" + address
	return clientcmd.WriteToFile(*config, path)
}
