package main

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// schedulingCase is one case as it is read: a state of a cluster and an incoming pod.
type schedulingCase struct {
	Name       string          `json:"name"`
	Config     caseConfig      `json:"config"`
	Gates      map[string]bool `json:"gates"`
	Namespaces []*v1.Namespace `json:"namespaces"`
	Nodes      []*v1.Node      `json:"nodes"`
	Pods       []*v1.Pod       `json:"pods"`
	Pod        *v1.Pod         `json:"pod"`

	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentVolumes"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentVolumeClaims"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csiDrivers"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities"`
	VolumeAttachments      []*storagev1.VolumeAttachment   `json:"volumeAttachments"`

	PodDisruptionBudgets   []*policyv1.PodDisruptionBudget `json:"podDisruptionBudgets"`
	Services               []*v1.Service                   `json:"services"`
	ReplicationControllers []*v1.ReplicationController     `json:"replicationControllers"`
	ReplicaSets            []*appsv1.ReplicaSet            `json:"replicaSets"`
	StatefulSets           []*appsv1.StatefulSet           `json:"statefulSets"`

	ResourceSlices   []*resourcev1.ResourceSlice `json:"resourceSlices"`
	DeviceClasses    []*resourcev1.DeviceClass   `json:"deviceClasses"`
	ResourceClaims   []*resourcev1.ResourceClaim `json:"resourceClaims"`
	DeviceTaintRules []*deviceTaintRule          `json:"deviceTaintRules"`
}

// caseConfig is what a case says of the scheduler's configuration.
type caseConfig struct {
	HardPodAffinityWeight *int32                        `json:"hardPodAffinityWeight"`
	ScoringStrategy       string                        `json:"scoringStrategy"`
	PreAdmission          bool                          `json:"preAdmission"`
	DefaultSpread         string                        `json:"defaultSpread"`
	DefaultConstraints    []v1.TopologySpreadConstraint `json:"defaultConstraints"`
}

// readCase reads a case. With an error it returns what it could read, so that the answer has a name.
func readCase(line []byte) (*schedulingCase, error) {
	one := &schedulingCase{}
	if err := json.Unmarshal(line, one); err != nil {
		return one, fmt.Errorf("reading the case: %w", err)
	}
	if one.Pod == nil {
		return one, fmt.Errorf("the case has no pod")
	}
	for _, pod := range append([]*v1.Pod{one.Pod}, one.Pods...) {
		if one.Config.PreAdmission {
			mergeLabelKeys(pod)
		}
		if pod.UID == "" {
			pod.UID = types.UID(fmt.Sprintf("pod %s/%s on %s", pod.Namespace, pod.Name, pod.Spec.NodeName))
		}
	}
	for _, claim := range one.ResourceClaims {
		if claim.UID == "" {
			claim.UID = types.UID("claim " + claim.Namespace + "/" + claim.Name)
		}
	}
	return one, nil
}

// setDefaults sets the defaults of the API on every object for which they matter. They depend on feature gates.
func (one *schedulingCase) setDefaults() {
	setDefaultsOf(one.Pods)
	setDefaultsOf([]*v1.Pod{one.Pod})
	setDefaultsOf(one.PersistentVolumes)
	setDefaultsOf(one.PersistentVolumeClaims)
	setDefaultsOf(one.StorageClasses)
	setDefaultsOf(one.CSIDrivers)
	setDefaultsOf(one.ResourceSlices)
	setDefaultsOf(one.DeviceClasses)
	setDefaultsOf(one.ResourceClaims)
	setDefaultsOf(one.DeviceTaintRules)
}

func setDefaultsOf[T runtime.Object](objects []T) {
	for _, object := range objects {
		legacyscheme.Scheme.Default(object)
	}
}

// placedPods returns the pods that the scheduler sees on nodes: neither finished nor on a node that is not listed.
func (one *schedulingCase) placedPods() []*v1.Pod {
	listed := make(map[string]bool, len(one.Nodes))
	for _, node := range one.Nodes {
		listed[node.Name] = true
	}
	var placed []*v1.Pod
	for _, pod := range one.Pods {
		if listed[pod.Spec.NodeName] && !finished(pod) {
			placed = append(placed, pod)
		}
	}
	return placed
}

// nominatedPods returns the pods of the case that wait for a node which was nominated for them.
func (one *schedulingCase) nominatedPods() []*v1.Pod {
	var nominated []*v1.Pod
	for _, pod := range one.Pods {
		if pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != "" && !finished(pod) {
			nominated = append(nominated, pod)
		}
	}
	return nominated
}

func finished(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// mergeLabelKeys does what the API server does with matchLabelKeys and mismatchLabelKeys when a pod is created.
func mergeLabelKeys(pod *v1.Pod) {
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		mergeKeys(pod, constraint.LabelSelector, constraint.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
	for _, term := range affinityTerms(pod) {
		mergeKeys(pod, term.LabelSelector, term.MatchLabelKeys, metav1.LabelSelectorOpIn)
		mergeKeys(pod, term.LabelSelector, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
}

func mergeKeys(pod *v1.Pod, selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator) {
	if selector == nil {
		return
	}
	for _, key := range keys {
		if value, ok := pod.Labels[key]; ok {
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
		}
	}
}

// affinityTerms returns the terms of affinity to and against other pods, so that they can be changed in place.
func affinityTerms(pod *v1.Pod) []*v1.PodAffinityTerm {
	if pod.Spec.Affinity == nil {
		return nil
	}
	var terms []*v1.PodAffinityTerm
	add := func(required []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm) {
		for i := range required {
			terms = append(terms, &required[i])
		}
		for i := range preferred {
			terms = append(terms, &preferred[i].PodAffinityTerm)
		}
	}
	if affinity := pod.Spec.Affinity.PodAffinity; affinity != nil {
		add(affinity.RequiredDuringSchedulingIgnoredDuringExecution, affinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if affinity := pod.Spec.Affinity.PodAntiAffinity; affinity != nil {
		add(affinity.RequiredDuringSchedulingIgnoredDuringExecution, affinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return terms
}
