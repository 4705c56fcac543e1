package main

import (
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

// provision stands for a volume that is made when the pod is bound.
const provision = "provision"

// bindings returns by node and claim the volume that Reserve would take for the pod's unbound claims, or nil where the
// pod uses no claims.
func (s *scheduler) bindings(pod *v1.Pod, feasible []fwk.NodeInfo) (map[string]map[string]string, error) {
	if !usesClaims(pod) {
		return nil, nil
	}
	binder := s.plugins[names.VolumeBinding].(*volumebinding.VolumeBinding).Binder
	claims, err := binder.GetPodVolumeClaims(klog.Logger{}, pod)
	if err != nil {
		return nil, err
	}
	bindings := map[string]map[string]string{}
	for _, node := range feasible {
		volumes, reasons, err := binder.FindPodVolumes(klog.Logger{}, pod, claims, node.Node())
		if err != nil || len(reasons) > 0 {
			return nil, fmt.Errorf("volumes on feasible node %s: %v %w", node.Node().Name, reasons, err)
		}
		onNode := map[string]string{}
		for _, binding := range volumes.StaticBindings {
			onNode[nameIn(binding, "pvc")] = nameIn(binding, "pv")
		}
		for _, provisioned := range volumes.DynamicProvisions {
			onNode[provisioned.PVC.Name] = provision
		}
		bindings[node.Node().Name] = onNode
	}
	return bindings, nil
}

// nameIn returns the name of the object in a private field of a binding.
func nameIn(binding *volumebinding.BindingInfo, field string) string {
	object := reflect.ValueOf(binding).Elem().FieldByName(field).Elem()
	return object.FieldByName("ObjectMeta").FieldByName("Name").String()
}

func usesClaims(pod *v1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil || volume.Ephemeral != nil {
			return true
		}
	}
	return false
}
