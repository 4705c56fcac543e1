package main

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// preemptionAnswer is the part of an answer about a pod that fits no node.
type preemptionAnswer struct {
	Preemption  *preemptionResult `json:"preemption"`
	Why         *string           `json:"why"`
	FullMessage string            `json:"fullMessage"`
}

// preemptionResult has the nodes on which preemption helps, and those that the choice leaves.
type preemptionResult struct {
	Candidates map[string]candidateVictims `json:"candidates"`
	Chosen     []string                    `json:"chosen"`
	Message    string                      `json:"message"`
}

// candidateVictims are the pods that would have to go from one node, the most important first.
type candidateVictims struct {
	Victims       []string `json:"victims"`
	PDBViolations int64    `json:"pdbViolations"`
}

// explain fills in the messages and the preemption of a pod that fits no node. It runs the cycle again as
// kube-scheduler does, where a node's status is that of its first failing filter.
func (s *scheduler) explain(ctx context.Context, one *schedulingCase, expect *expectation) error {
	state := framework.NewCycleState()
	diagnosis, err := s.diagnose(ctx, state, one.Pod)
	if err != nil {
		return err
	}
	message := s.fitError(one.Pod, diagnosis)
	expect.Message = &message
	expect.preemptionAnswer = &preemptionAnswer{}
	candidates, err := s.candidates(ctx, state, one.Pod, diagnosis.NodeToStatus)
	if err != nil {
		return err
	}
	if len(candidates) > 0 {
		expect.Preemption = &preemptionResult{Candidates: map[string]candidateVictims{}}
		for _, candidate := range candidates {
			expect.Preemption.Candidates[candidate.Name()] = victimsOf(candidate)
		}
		expect.Preemption.Chosen = s.chosen(ctx, candidates)
		node := expect.Preemption.Chosen[0]
		expect.FullMessage = message + preemptionReport(node, len(expect.Preemption.Candidates[node].Victims))
		expect.Preemption.Message = expect.FullMessage
		return nil
	}
	return s.postFilter(ctx, state, one.Pod, diagnosis, expect)
}

// diagnose runs PreFilter and Filter as kube-scheduler's findNodesThatFitPod does.
func (s *scheduler) diagnose(ctx context.Context, state fwk.CycleState, pod *v1.Pod) (framework.Diagnosis, error) {
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	narrowed, status, unschedulable := s.framework.RunPreFilterPlugins(ctx, state, pod)
	diagnosis.UnschedulablePlugins = unschedulable
	if !status.IsSuccess() {
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
		diagnosis.AddPluginStatus(status)
		return diagnosis, nil
	}
	if !narrowed.AllNodes() {
		diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(unschedulable))))
	}
	for _, node := range s.nodes {
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(node.Node().Name) {
			continue
		}
		status := s.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		if !status.IsRejected() {
			return diagnosis, fmt.Errorf("node %s: %v, but no node was feasible", node.Node().Name, status)
		}
		diagnosis.NodeToStatus.Set(node.Node().Name, status)
		diagnosis.AddPluginStatus(status)
	}
	return diagnosis, nil
}

func (s *scheduler) fitError(pod *v1.Pod, diagnosis framework.Diagnosis) string {
	return (&framework.FitError{Pod: pod, NumAllNodes: len(s.nodes), Diagnosis: diagnosis}).Error()
}

func (s *scheduler) preemption() *defaultpreemption.DefaultPreemption {
	return s.plugins[preemptionPlugin].(*defaultpreemption.DefaultPreemption)
}

// candidates returns the nodes on which preemption helps, by the dry run on all nodes that can be tried.
func (s *scheduler) candidates(ctx context.Context, state fwk.CycleState, pod *v1.Pod, status *framework.NodeToStatus) ([]preemption.Candidate, error) {
	evaluator := s.preemption().Evaluator
	if eligible, _ := evaluator.PodEligibleToPreemptOthers(ctx, pod, status.Get(pod.Status.NominatedNodeName)); !eligible {
		return nil, nil
	}
	nodes, err := status.NodesForStatusCode(s.snapshot.NodeInfos(), fwk.Unschedulable)
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	budgets, err := evaluator.PdbLister.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	candidates, _, err := evaluator.DryRunPreemption(ctx, state, pod, nodes, budgets, 0, int32(len(nodes))+1)
	return candidates, err
}

// chosen returns the candidates that are the best, all of them where several are equally good.
func (s *scheduler) chosen(ctx context.Context, candidates []preemption.Candidate) []string {
	evaluator := s.preemption().Evaluator
	best := evaluator.SelectCandidate(ctx, candidates)
	chosen := []string{best.Name()}
	for _, other := range candidates {
		if other.Name() == best.Name() {
			continue
		}
		// The last criterion is the latest start. One that would win with starts a nanosecond later is as good.
		later := laterCandidate{other}
		if evaluator.SelectCandidate(ctx, []preemption.Candidate{best, later}).Name() == other.Name() {
			chosen = append(chosen, other.Name())
		}
	}
	slices.Sort(chosen)
	return chosen
}

// laterCandidate is a candidate whose victims have started a nanosecond later.
type laterCandidate struct {
	preemption.Candidate
}

// Victims returns copies of the candidate's victims.
func (c laterCandidate) Victims() *extenderv1.Victims {
	victims := *c.Candidate.Victims()
	victims.Pods = slices.Clone(victims.Pods)
	for i, pod := range victims.Pods {
		later := *pod
		start := metav1.NewTime(util.GetPodStartTime(pod).Add(time.Nanosecond))
		later.Status.StartTime = &start
		victims.Pods[i] = &later
	}
	return &victims
}

// victimsOf returns the victims of a candidate by importance, ties by namespace and name.
func victimsOf(candidate preemption.Candidate) candidateVictims {
	pods := slices.Clone(candidate.Victims().Pods)
	name := func(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }
	sort.SliceStable(pods, func(i, j int) bool {
		switch {
		case util.MoreImportantPod(pods[i], pods[j]):
			return true
		case util.MoreImportantPod(pods[j], pods[i]):
			return false
		}
		return name(pods[i]) < name(pods[j])
	})
	victims := candidateVictims{PDBViolations: candidate.Victims().NumPDBViolations}
	for _, pod := range pods {
		victims.Victims = append(victims.Victims, name(pod))
	}
	return victims
}

// postFilter runs the PostFilter plugins of a pod for which preemption does not help.
func (s *scheduler) postFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, diagnosis framework.Diagnosis, expect *expectation) error {
	_, status := s.framework.RunPostFilterPlugins(ctx, state, pod, diagnosis.NodeToStatus)
	diagnosis.PostFilterMsg = status.Message()
	expect.FullMessage = s.fitError(pod, diagnosis)
	for _, reason := range status.Reasons() {
		if strings.HasPrefix(reason, "preemption: ") {
			expect.Why = &reason
		}
	}
	return nil
}
