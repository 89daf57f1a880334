// The two controllers of kube-controller-manager without which deletes do not end: the one that
// empties namespaces and the one that follows owner references. On demand the migrator of
// storagemigration.k8s.io with them, which works on what the second one knows.

package main

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/storageversionmigrator"
)

const (
	workers = 4
	// How soon the garbage collector notices a new CustomResourceDefinition.
	discoveryPeriod = time.Second
	resyncPeriod    = 10 * time.Minute
)

// Starts them and returns when they watch.
func startControllers(ctx context.Context, config *rest.Config, migrator bool) error {
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
	graph := garbagecollector.NewDependencyGraphBuilder(
		ctx, metadataClient, mapper, ignored(), informerfactory.NewInformerFactory(shared, custom), started)
	collector, err := garbagecollector.NewComposedGarbageCollector(ctx, client, metadataClient, mapper, graph)
	if err != nil {
		return fmt.Errorf("garbage collector: %w", err)
	}
	namespaces := namespace.NewNamespaceController(
		ctx, client, metadataClient, client.Discovery().ServerPreferredNamespacedResources,
		shared.Core().V1().Namespaces(), resyncPeriod, v1.FinalizerKubernetes)
	if migrator {
		migrate, err := newMigrator(ctx, config, client, metadataClient, shared, mapper, graph)
		if err != nil {
			return fmt.Errorf("storage version migrator: %w", err)
		}
		defer migrate()
	}
	shared.Start(ctx.Done())
	custom.Start(ctx.Done())
	close(started)
	go collector.Run(ctx, workers, resyncPeriod)
	go collector.Sync(ctx, client.Discovery(), discoveryPeriod)
	go namespaces.Run(ctx, workers)
	shared.WaitForCacheSync(ctx.Done())
	return nil
}

// The three controllers that kube-controller-manager calls its storage version migrator. Returns what runs them.
func newMigrator(
	ctx context.Context, config *rest.Config, client kubernetes.Interface, metadataClient metadata.Interface,
	shared informers.SharedInformerFactory, mapper meta.ResettableRESTMapper, graph *garbagecollector.GraphBuilder,
) (func(), error) {
	definitions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	migrations := shared.Storagemigration().V1beta1().StorageVersionMigrations()
	const name = "storage-version-migrator-controller"
	of := []func(context.Context){
		storageversionmigrator.NewSVMController(ctx, client, objects, migrations, name, mapper, graph).Run,
		storageversionmigrator.NewResourceVersionController(
			ctx, client, client.Discovery(), metadataClient, migrations, mapper).Run,
		storageversionmigrator.NewCustomResourceController(
			ctx, client, migrations, definitions.ApiextensionsV1().CustomResourceDefinitions()).Run,
	}
	return func() {
		for _, run := range of {
			go run(ctx)
		}
	}, nil
}

func ignored() map[schema.GroupResource]struct{} {
	return map[schema.GroupResource]struct{}{
		{Group: "", Resource: "events"}:              {},
		{Group: "events.k8s.io", Resource: "events"}: {},
	}
}
