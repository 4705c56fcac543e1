package main

import (
	"context"
	"fmt"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// expectation is kube-scheduler's answer to a case, in the format of the conformance vectors.
type expectation struct {
	Prefilter      *rejection                     `json:"prefilter"`
	PrefilterNodes []string                       `json:"prefilterNodes,omitempty"`
	Filters        map[string]map[string][]string `json:"filters"`
	Unresolvable   map[string][]string            `json:"unresolvable"`
	Feasible       []string                       `json:"feasible"`
	Scores         map[string]map[string]int64    `json:"scores"`
	ScoreSkipped   []string                       `json:"scoreSkipped"`
	Total          map[string]int64               `json:"total"`
	Best           []string                       `json:"best"`
	Message        *string                        `json:"message"`
	Bindings       map[string]map[string]string   `json:"bindings,omitempty"`
	*preemptionAnswer
}

// rejection is the answer of a PreFilter that rejected every node.
type rejection struct {
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

// answer runs the scheduling cycle of the case's pod, every plugin on every node separately.
func (one *schedulingCase) answer() (expect *expectation, err error) {
	err = withGates(one.Gates, func(defaults *defaults) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ctx, firstPanic := withPanics(ctx)
		one.setDefaults()
		s, err := newScheduler(ctx, one, defaults)
		if err != nil {
			return err
		}
		if expect, err = s.schedule(ctx, one); firstPanic() != nil {
			return firstPanic()
		}
		return err
	})
	return expect, err
}

func (s *scheduler) schedule(ctx context.Context, one *schedulingCase) (*expectation, error) {
	expect := &expectation{
		Filters:      map[string]map[string][]string{},
		Unresolvable: map[string][]string{},
		Feasible:     []string{},
		Scores:       map[string]map[string]int64{},
		ScoreSkipped: []string{},
		Total:        map[string]int64{},
		Best:         []string{},
	}
	if len(s.nodes) == 0 {
		message := "no nodes available to schedule pods"
		expect.Message = &message
		return expect, nil
	}
	state := framework.NewCycleState()
	narrowed, status, _ := s.framework.RunPreFilterPlugins(ctx, state, one.Pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, status.AsError()
		}
		expect.Prefilter = &rejection{status.Plugin(), status.Code().String(), status.Reasons()}
		return expect, s.explain(ctx, one, expect)
	}
	if !narrowed.AllNodes() {
		expect.PrefilterNodes = sets.List(narrowed.NodeNames)
	}
	feasible, err := s.filter(ctx, state, one.Pod, narrowed, expect)
	if err != nil {
		return nil, err
	}
	if len(feasible) == 0 {
		return expect, s.explain(ctx, one, expect)
	}
	if expect.Bindings, err = s.bindings(one.Pod, feasible); err != nil {
		return nil, err
	}
	return expect, s.score(ctx, state, one.Pod, feasible, expect)
}

// filter runs every filter on every node and returns the nodes that pass all of them.
func (s *scheduler) filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, narrowed *fwk.PreFilterResult, expect *expectation) ([]fwk.NodeInfo, error) {
	var feasible []fwk.NodeInfo
	for _, node := range s.nodes {
		name := node.Node().Name
		included := narrowed.AllNodes() || narrowed.NodeNames.Has(name)
		passes, err := s.passes(ctx, state, pod, node)
		if err != nil {
			return nil, err
		}
		rejected := false
		for _, pass := range passes {
			if rejected, err = s.filterOnce(ctx, pass, pod, expect); err != nil && included {
				return nil, fmt.Errorf("node %s: %w", name, err)
			}
			if rejected {
				break
			}
		}
		if !rejected && included {
			feasible = append(feasible, node)
			expect.Feasible = append(expect.Feasible, name)
		}
	}
	slices.Sort(expect.Feasible)
	for _, nodes := range expect.Unresolvable {
		slices.Sort(nodes)
	}
	return feasible, nil
}

// filterOnce notes the rejections of all filters in one run, and returns whether there are any. It fails if the first
// filter that does not accept the node does not reject it either.
func (s *scheduler) filterOnce(ctx context.Context, pass pass, pod *v1.Pod, expect *expectation) (bool, error) {
	rejected := false
	for _, plugin := range s.filters {
		if pass.state.GetSkipFilterPlugins().Has(plugin.Name()) {
			continue
		}
		status := plugin.Filter(ctx, pass.state, pod, pass.node)
		if status.IsSuccess() {
			continue
		}
		if !status.IsRejected() && !rejected {
			return true, fmt.Errorf("plugin %s: %w", plugin.Name(), status.AsError())
		}
		rejected = true
		expect.addFailure(plugin.Name(), pass.node.Node().Name, status)
	}
	return rejected, nil
}

// pass is one run of the filters on a node: with its nominated pods, or without.
type pass struct {
	state fwk.CycleState
	node  fwk.NodeInfo
}

// passes returns the runs of the filters on a node, of which the first with a rejection counts. As in kube-scheduler
// there is one with the pods that are nominated for the node and not less important, if there are any, and one without.
func (s *scheduler) passes(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) ([]pass, error) {
	plain := pass{state, node}
	with := pass{}
	for _, nominated := range s.framework.NominatedPodsForNode(node.Node().Name) {
		if corev1helpers.PodPriority(nominated.GetPod()) < corev1helpers.PodPriority(pod) || nominated.GetPod().UID == pod.UID {
			continue
		}
		if with.node == nil {
			with = pass{state.Clone(), node.Snapshot()}
		}
		with.node.AddPodInfo(nominated)
		if status := s.framework.RunPreFilterExtensionAddPod(ctx, with.state, pod, nominated, with.node); !status.IsSuccess() {
			return nil, status.AsError()
		}
	}
	if with.node == nil {
		return []pass{plain}, nil
	}
	return []pass{with, plain}, nil
}

func (expect *expectation) addFailure(plugin, node string, status *fwk.Status) {
	if expect.Filters[plugin] == nil {
		expect.Filters[plugin] = map[string][]string{}
	}
	expect.Filters[plugin][node] = sortedReasons(plugin, status.Reasons())
	if status.Code() == fwk.UnschedulableAndUnresolvable {
		expect.Unresolvable[plugin] = append(expect.Unresolvable[plugin], node)
	}
}

// sortedReasons sorts the reasons about scalar resources, which come in the order of a map.
func sortedReasons(plugin string, reasons []string) []string {
	if plugin != names.NodeResourcesFit {
		return reasons
	}
	fixed := []string{"Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"}
	rank := func(reason string) int {
		if i := slices.Index(fixed, reason); i >= 0 {
			return i
		}
		return len(fixed)
	}
	reasons = slices.Clone(reasons)
	sort.SliceStable(reasons, func(i, j int) bool {
		if rank(reasons[i]) != rank(reasons[j]) {
			return rank(reasons[i]) < rank(reasons[j])
		}
		return rank(reasons[i]) == len(fixed) && reasons[i] < reasons[j]
	})
	return reasons
}

// score runs the score plugins over the feasible nodes.
func (s *scheduler) score(ctx context.Context, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, expect *expectation) error {
	if status := s.framework.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return status.AsError()
	}
	scored, status := s.framework.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return status.AsError()
	}
	for _, node := range scored {
		expect.Total[node.Name] = node.TotalScore
		for _, score := range node.Scores {
			if expect.Scores[score.Name] == nil {
				expect.Scores[score.Name] = map[string]int64{}
			}
			expect.Scores[score.Name][node.Name] = score.Score / s.weights[score.Name]
		}
	}
	for _, plugin := range sets.List(state.GetSkipScorePlugins()) {
		if plugin != names.VolumeBinding && plugin != names.DynamicResources {
			expect.ScoreSkipped = append(expect.ScoreSkipped, plugin)
		}
	}
	expect.dropSilent(names.VolumeBinding)
	expect.dropSilent(names.DynamicResources)
	for name, total := range expect.Total {
		if len(expect.Best) > 0 && total > expect.Total[expect.Best[0]] {
			expect.Best = expect.Best[:0]
		}
		if len(expect.Best) == 0 || total == expect.Total[expect.Best[0]] {
			expect.Best = append(expect.Best, name)
		}
	}
	slices.Sort(expect.Best)
	return nil
}

// dropSilent leaves the scores of a plugin out when it has given no point to any node.
func (expect *expectation) dropSilent(plugin string) {
	for _, score := range expect.Scores[plugin] {
		if score != 0 {
			return
		}
	}
	delete(expect.Scores, plugin)
}
