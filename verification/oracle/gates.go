package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// defaults is what depends on the feature gates and on nothing else: the default profile and the plugins' constructors.
type defaults struct {
	profile  config.KubeSchedulerProfile
	registry frameworkruntime.Registry
}

var (
	// gatesLock is held for reading while a case with the process's gates is answered, and for writing while one with
	// gates of its own is: gates are global in Kubernetes.
	gatesLock       sync.RWMutex
	processGates    = map[string]bool{}
	processDefaults *defaults
)

func newDefaults() (*defaults, error) {
	configuration, err := latest.Default()
	if err != nil {
		return nil, err
	}
	return &defaults{configuration.Profiles[0], frameworkplugins.NewInTreeRegistry()}, nil
}

// setProcessGates sets the gates for all cases, given as "A=true,B=false".
func setProcessGates(text string) error {
	for _, pair := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(pair, "=")
		enabled, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("gate %q: %w", pair, err)
		}
		processGates[name] = enabled
	}
	err := utilfeature.DefaultMutableFeatureGate.SetFromMap(processGates)
	if err == nil {
		processDefaults, err = newDefaults()
	}
	return err
}

// withGates calls answer under the given gates, or under the process's own where there are none.
func withGates(gates map[string]bool, answer func(*defaults) error) error {
	if len(gates) == 0 {
		gatesLock.RLock()
		defer gatesLock.RUnlock()
		return answer(processDefaults)
	}
	gatesLock.Lock()
	defer gatesLock.Unlock()
	// Gates that are refused would be remembered and refused with all later ones, so that a copy takes them first.
	if err := utilfeature.DefaultMutableFeatureGate.DeepCopy().SetFromMap(gates); err != nil {
		return err
	}
	defer resetGates(gates)
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return err
	}
	own, err := newDefaults()
	if err != nil {
		return err
	}
	return answer(own)
}

// resetGates takes the gates of a case back. It panics where that fails, for all later answers would be wrong.
func resetGates(gates map[string]bool) {
	gate := utilfeature.DefaultMutableFeatureGate
	before := map[string]bool{}
	for name := range gates {
		if enabled, ok := processGates[name]; ok {
			before[name] = enabled
			continue
		}
		for known, spec := range gate.GetAll() {
			if known == featuregate.Feature(name) && !spec.LockToDefault {
				before[name] = spec.Default
			}
		}
	}
	if err := gate.SetFromMap(before); err != nil {
		panic(err)
	}
}
