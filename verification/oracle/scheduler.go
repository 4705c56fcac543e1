package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// scheduler is kube-scheduler's framework over the state of one case.
type scheduler struct {
	framework framework.Framework
	plugins   map[string]fwk.Plugin
	filters   []fwk.FilterPlugin
	weights   map[string]int64
	snapshot  *internalcache.Snapshot
	nodes     []fwk.NodeInfo
	factory   *filledFactory
}

// newScheduler makes the framework of a case. It stays valid until ctx ends.
func newScheduler(ctx context.Context, one *schedulingCase, defaults *defaults) (*scheduler, error) {
	factory := newFilledFactory()
	if err := one.fillFactory(factory); err != nil {
		return nil, err
	}
	s := &scheduler{
		plugins:  map[string]fwk.Plugin{},
		weights:  map[string]int64{},
		snapshot: internalcache.NewSnapshot(one.placedPods(), one.Nodes),
		factory:  factory,
	}
	draManager, err := newDRAManager(ctx, factory)
	if err != nil {
		return nil, err
	}
	profile := one.profile(defaults)
	s.framework, err = frameworkruntime.NewFramework(ctx, s.remembering(defaults.registry), profile, append(
		releaseOptions(ctx, s.snapshot),
		frameworkruntime.WithClientSet(noCluster),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(draManager),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(s.snapshot),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodNominator(newNominator(one.nominatedPods())),
	)...)
	if err != nil {
		return nil, err
	}
	enabled := s.framework.ListPlugins()
	for _, plugin := range enabled.Filter.Enabled {
		s.filters = append(s.filters, s.plugins[plugin.Name].(fwk.FilterPlugin))
	}
	for _, plugin := range enabled.Score.Enabled {
		s.weights[plugin.Name] = int64(plugin.Weight)
	}
	for _, node := range one.Nodes {
		info, err := s.snapshot.NodeInfos().Get(node.Name)
		if err != nil {
			return nil, err
		}
		s.nodes = append(s.nodes, info)
	}
	return s, nil
}

// remembering returns the registry with constructors that note the plugins they made.
func (s *scheduler) remembering(registry frameworkruntime.Registry) frameworkruntime.Registry {
	remembering := frameworkruntime.Registry{}
	for name, make := range registry {
		remembering[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := make(ctx, args, handle)
			s.plugins[name] = plugin
			return plugin, err
		}
	}
	return remembering
}

// profile returns the default profile with what the case's configuration says.
func (one *schedulingCase) profile(defaults *defaults) *config.KubeSchedulerProfile {
	profile := defaults.profile.DeepCopy()
	for _, plugin := range profile.PluginConfig {
		switch args := plugin.Args.(type) {
		case *config.InterPodAffinityArgs:
			if one.Config.HardPodAffinityWeight != nil {
				args.HardPodAffinityWeight = *one.Config.HardPodAffinityWeight
			}
		case *config.NodeResourcesFitArgs:
			if one.Config.ScoringStrategy != "" {
				args.ScoringStrategy.Type = config.ScoringStrategyType(one.Config.ScoringStrategy)
			}
		case *config.PodTopologySpreadArgs:
			args.DefaultingType = config.ListDefaulting
			args.DefaultConstraints = one.Config.DefaultConstraints
			if one.Config.DefaultSpread == "System" {
				args.DefaultingType = config.SystemDefaulting
			}
		case *config.DefaultPreemptionArgs:
			args.MinCandidateNodesPercentage = 100
		}
	}
	return profile
}

// nominator knows the pods that wait for a nominated node.
type nominator struct {
	fwk.PodNominator
	byNode map[string][]fwk.PodInfo
}

func newNominator(pods []*v1.Pod) nominator {
	n := nominator{byNode: map[string][]fwk.PodInfo{}}
	for _, pod := range pods {
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			panic(fmt.Errorf("nominated pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
		n.byNode[pod.Status.NominatedNodeName] = append(n.byNode[pod.Status.NominatedNodeName], info)
	}
	return n
}

func (n nominator) NominatedPodsForNode(node string) []fwk.PodInfo { return n.byNode[node] }

// preemptionPlugin returns the name under which the default preemption is registered.
const preemptionPlugin = names.DefaultPreemption
