// The two controllers of kube-controller-manager without which deletes do not end: the one that
// empties namespaces and the one that follows owner references.

package main

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

const (
	workers = 4
	// How soon the garbage collector notices a new CustomResourceDefinition.
	discoveryPeriod = time.Second
	resyncPeriod    = 10 * time.Minute
)

// Starts both and returns when they watch.
func startControllers(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(client, resyncPeriod)
	// Custom resources are known by their metadata alone.
	custom := metadatainformer.NewSharedInformerFactory(metadataClient, resyncPeriod)
	started := make(chan struct{})
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	collector, err := garbagecollector.NewGarbageCollector(
		ctx, client, metadataClient, mapper, ignored(), informerfactory.NewInformerFactory(shared, custom), started)
	if err != nil {
		return fmt.Errorf("garbage collector: %w", err)
	}
	namespaces := namespace.NewNamespaceController(
		ctx, client, metadataClient, client.Discovery().ServerPreferredNamespacedResources,
		shared.Core().V1().Namespaces(), resyncPeriod, v1.FinalizerKubernetes)
	shared.Start(ctx.Done())
	custom.Start(ctx.Done())
	close(started)
	go collector.Run(ctx, workers, resyncPeriod)
	go collector.Sync(ctx, client.Discovery(), discoveryPeriod)
	go namespaces.Run(ctx, workers)
	shared.WaitForCacheSync(ctx.Done())
	return nil
}

func ignored() map[schema.GroupResource]struct{} {
	return map[schema.GroupResource]struct{}{
		{Group: "", Resource: "events"}:              {},
		{Group: "events.k8s.io", Resource: "events"}: {},
	}
}
