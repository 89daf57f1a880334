// What etcd holds, for tests that look behind the API server.

package main

import (
	"context"
	"encoding/json"
	"io"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const etcdLimit = time.Minute

// One key.
type stored struct {
	Key string `json:"key"`
	// The revision of its last change.
	Revision int64 `json:"revision"`
	// Bytes that are no UTF-8 are replaced.
	Text string `json:"text"`
}

// Writes the keys that begin with prefix, in their order.
func get(of cluster, prefix string, to io.Writer) error {
	return withEtcd(of, func(ctx context.Context, client *clientv3.Client) error {
		found, err := client.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		lines := json.NewEncoder(to)
		lines.SetEscapeHTML(false)
		for _, one := range found.Kvs {
			if err := lines.Encode(stored{string(one.Key), one.ModRevision, string(one.Value)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Forgets what was before the newest revision: a list that began earlier cannot go on as of its beginning.
func compact(of cluster) error {
	return withEtcd(of, func(ctx context.Context, client *clientv3.Client) error {
		newest, err := client.Get(ctx, "none", clientv3.WithCountOnly())
		if err != nil {
			return err
		}
		_, err = client.Compact(ctx, newest.Header.Revision, clientv3.WithCompactPhysical())
		return err
	})
}

func withEtcd(of cluster, do func(context.Context, *clientv3.Client) error) error {
	ctx, stop := context.WithTimeout(context.Background(), etcdLimit)
	defer stop()
	address, err := of.etcd()
	if err != nil {
		return err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Context: ctx})
	if err != nil {
		return err
	}
	defer client.Close()
	return do(ctx, client)
}
