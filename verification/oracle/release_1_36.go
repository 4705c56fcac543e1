//go:build kube136

package main

import (
	"context"

	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	informersv1beta2 "k8s.io/client-go/informers/resource/v1beta2"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

type deviceTaintRule = resourcev1beta2.DeviceTaintRule

func deviceTaintRules(factory *filledFactory) informersv1beta2.DeviceTaintRuleInformer {
	return factory.Resource().V1beta2().DeviceTaintRules()
}

// newDRAManager makes what the plugin DynamicResources needs, as scheduler.New and addAllEventHandlers do. The tracker,
// which lists slices in a random order, is only used where there are rules for it.
func newDRAManager(ctx context.Context, factory *filledFactory) (fwk.SharedDRAManager, error) {
	hasRules := len(deviceTaintRules(factory).Informer().GetStore().ListKeys()) > 0
	options := resourceslicetracker.Options{
		EnableDeviceTaintRules:   hasRules && utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
		EnableConsumableCapacity: utilfeature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
	}
	if options.EnableDeviceTaintRules {
		options.TaintInformer = deviceTaintRules(factory)
		options.ClassInformer = factory.Resource().V1().DeviceClasses()
	}
	tracker, err := resourceslicetracker.StartTracker(ctx, options)
	if err != nil {
		return nil, err
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	manager := dynamicresources.NewDRAManager(ctx, claims, tracker, factory)
	if utilfeature.DefaultFeatureGate.Enabled(features.DRAExtendedResource) {
		cache := manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache)
		if _, err := factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(cache); err != nil {
			return nil, err
		}
	}
	return manager, nil
}

// releaseOptions returns the options of the framework that only this version has.
func releaseOptions(ctx context.Context, _ *internalcache.Snapshot) []frameworkruntime.Option {
	options := []frameworkruntime.Option{frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap())}
	if utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		options = append(options, frameworkruntime.WithPodGroupManager(internalcache.New(ctx, nil, true)))
	}
	return options
}

// preemptionReport returns what PostFilter adds to the message where preemption helps.
func preemptionReport(string, int) string {
	return ""
}
