package main

import (
	"reflect"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// noCluster is a client of a cluster without objects. Nothing that is run here reads or writes through it.
var noCluster kubernetes.Interface = fake.NewSimpleClientset()

// filledFactory is a factory of informers whose stores are filled by hand and which are never started: event handlers
// get every object at once when they are added. A case thus needs neither goroutines nor waiting.
type filledFactory struct {
	informers.SharedInformerFactory
	informers map[reflect.Type]*filledInformer
}

func newFilledFactory() *filledFactory {
	return &filledFactory{
		SharedInformerFactory: informers.NewSharedInformerFactory(noCluster, 0),
		informers:             map[reflect.Type]*filledInformer{},
	}
}

// InformerFor returns the informer of the object's type; the factory's groups below come here.
func (f *filledFactory) InformerFor(object runtime.Object, make internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	kind := reflect.TypeOf(object)
	if _, ok := f.informers[kind]; !ok {
		informer := make(noCluster, 0)
		f.informers[kind] = &filledInformer{informer, orderedIndexer{informer.GetIndexer()}}
	}
	return f.informers[kind]
}

func (f *filledFactory) Core() core.Interface         { return core.New(f, "", nil) }
func (f *filledFactory) Apps() apps.Interface         { return apps.New(f, "", nil) }
func (f *filledFactory) Policy() policy.Interface     { return policy.New(f, "", nil) }
func (f *filledFactory) Resource() resource.Interface { return resource.New(f, "", nil) }
func (f *filledFactory) Storage() storage.Interface   { return storage.New(f, "", nil) }

// filledInformer is an informer that counts as synchronized with what its store has.
type filledInformer struct {
	cache.SharedIndexInformer
	indexer orderedIndexer
}

func (i *filledInformer) GetIndexer() cache.Indexer { return i.indexer }

func (i *filledInformer) GetStore() cache.Store { return i.indexer }

func (i *filledInformer) HasSynced() bool { return true }

func (i *filledInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, object := range i.GetIndexer().List() {
		handler.OnAdd(object, true)
	}
	return synced{}, nil
}

func (i *filledInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *filledInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// reverseOrder lists objects the other way around. What then changes depends on an order that is random in Kubernetes.
var reverseOrder bool

// orderedIndexer is an index that lists objects by namespace and name, which Kubernetes lists in a random order.
type orderedIndexer struct {
	cache.Indexer
}

func (i orderedIndexer) List() []any { return inOrder(i.Indexer.List()) }

func (i orderedIndexer) Index(name string, object any) ([]any, error) {
	objects, err := i.Indexer.Index(name, object)
	return inOrder(objects), err
}

func (i orderedIndexer) ByIndex(name, value string) ([]any, error) {
	objects, err := i.Indexer.ByIndex(name, value)
	return inOrder(objects), err
}

func inOrder(objects []any) []any {
	key := func(object any) string {
		key, _ := cache.MetaNamespaceKeyFunc(object)
		return key
	}
	sort.Slice(objects, func(i, j int) bool { return (key(objects[i]) < key(objects[j])) != reverseOrder })
	return objects
}

// synced is the registration of a handler that has all objects.
type synced struct{}

func (synced) HasSynced() bool { return true }

// fill puts objects into an informer's store.
func fill[T any](informer cache.SharedIndexInformer, objects []T) error {
	for _, object := range objects {
		if err := informer.GetIndexer().Add(object); err != nil {
			return err
		}
	}
	return nil
}

// fillFactory puts the objects of a case into a factory's informers. It comes before plugins are made.
func (one *schedulingCase) fillFactory(factory *filledFactory) error {
	coreV1, storageV1, appsV1, resourceV1 := factory.Core().V1(), factory.Storage().V1(), factory.Apps().V1(), factory.Resource().V1()
	for _, err := range []error{
		fill(coreV1.Namespaces().Informer(), one.Namespaces),
		fill(coreV1.Nodes().Informer(), one.Nodes),
		fill(coreV1.Pods().Informer(), one.Pods),
		coreV1.Pods().Informer().GetIndexer().Add(one.Pod),
		fill(coreV1.PersistentVolumes().Informer(), one.PersistentVolumes),
		fill(coreV1.PersistentVolumeClaims().Informer(), one.PersistentVolumeClaims),
		fill(coreV1.Services().Informer(), one.Services),
		fill(coreV1.ReplicationControllers().Informer(), one.ReplicationControllers),
		fill(storageV1.StorageClasses().Informer(), one.StorageClasses),
		fill(storageV1.CSINodes().Informer(), one.CSINodes),
		fill(storageV1.CSIDrivers().Informer(), one.CSIDrivers),
		fill(storageV1.CSIStorageCapacities().Informer(), one.CSIStorageCapacities),
		fill(storageV1.VolumeAttachments().Informer(), one.VolumeAttachments),
		fill(factory.Policy().V1().PodDisruptionBudgets().Informer(), one.PodDisruptionBudgets),
		fill(appsV1.ReplicaSets().Informer(), one.ReplicaSets),
		fill(appsV1.StatefulSets().Informer(), one.StatefulSets),
		fill(resourceV1.ResourceSlices().Informer(), one.ResourceSlices),
		fill(resourceV1.DeviceClasses().Informer(), one.DeviceClasses),
		fill(resourceV1.ResourceClaims().Informer(), one.ResourceClaims),
		fill(deviceTaintRules(factory).Informer(), one.DeviceTaintRules),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}
