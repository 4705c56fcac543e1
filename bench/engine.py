"""The engine alone: parsed pods in, decisions out, each visible to the next. Nothing is stored."""

from dataclasses import dataclass
from time import perf_counter, process_time

from msgspec.structs import replace

from bench.workloads import Workload
from service.engine import Cluster, Placement, place
from service.model.config import ClusterConfig
from service.model.manifest import TemplateCache, parse_namespace, parse_node, parse_pod


@dataclass(frozen=True)
class EngineFigures:
    """One run of one workload."""

    pods: int
    unschedulable: int
    seconds: float
    cpu_seconds: float
    load_seconds: float

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.seconds


def loaded(workload: Workload, templates: TemplateCache) -> Cluster:
    """The cluster as it is before the measured pods come."""
    cluster = Cluster(ClusterConfig())
    for namespace in workload.namespaces():
        cluster.put_namespace(parse_namespace(namespace).subject)
    for node in workload.nodes():
        cluster.put_node(parse_node(node).node)
    for pod in workload.placed():
        cluster.put_pod(parse_pod(pod, templates).pod)
    return cluster


def run(workload: Workload) -> EngineFigures:
    """Place the measured pods one after another, binding each."""
    templates = TemplateCache()
    started = perf_counter()
    cluster = loaded(workload, templates)
    load_seconds = perf_counter() - started
    pods = [parse_pod(each, templates, to_place=True).pod for each in workload.measured()]
    unschedulable = 0
    began, began_cpu = perf_counter(), process_time()
    for pod in pods:
        answer = place(cluster, pod)
        if isinstance(answer, Placement):
            cluster.put_pod(replace(pod, node_name=answer.node_name))
        else:
            unschedulable += 1
        cluster.settle(cluster.mark())
    return EngineFigures(
        pods=len(pods),
        unschedulable=unschedulable,
        seconds=perf_counter() - began,
        cpu_seconds=process_time() - began_cpu,
        load_seconds=load_seconds,
    )
