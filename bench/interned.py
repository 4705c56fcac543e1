"""What pods with very many rules leave in the engine, and cost the pods of others that come after them.

Each case makes dry runs of pods that ask for much, as no real manifest does. Afterwards pods of new
templates are placed, and their CPU time is that of everybody's next new template. `python -m
bench.interned` raises the limits of pods for this, and then shows what the default limits refuse.
"""

import gc
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

from bench import worlds
from service.engine import Cluster, place
from service.engine.integrity.footprint import total_bytes
from service.model.core.errors import InvalidManifest
from service.model.pods.pod import Pod
from service.model.registry.manifests import Limits, TemplateCache, parse_pod

NODES = 1_000
FOLLOWING = 20
RAISED = Limits(
    pod_terms_max=100_000,
    pod_expressions_max=100_000,
    pod_values_max=100_000,
    pod_topology_keys_max=100_000,
)

Manifest = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Leftovers:
    """The figures of one case; sizes in megabytes, times in milliseconds."""

    grown: float
    """By how much the process has grown."""
    kept: float
    """By how much the engine's own accounting has grown."""
    following: float
    """CPU time of each pod of a new template that follows."""


def repelling(number: int, terms: int = 1_000) -> Manifest:
    """Make a pod that repels pods by as many labels which they have not."""
    selectors = [
        {"matchExpressions": [{"key": f"k{number}-{n}", "operator": "NotIn", "values": ["no"]}]}
        for n in range(terms)
    ]
    rules = [{"labelSelector": each, "topologyKey": worlds.HOST} for each in selectors]
    return worlds.pod(f"repelling-{number}", worlds.affinity("podAntiAffinity", *rules))


def keyed(number: int, keys: int = 1_000) -> Manifest:
    """Make a pod that repels itself by as many topology keys which no node has."""
    rules = [worlds.term("any", f"example.com/key-{number}-{n}") for n in range(keys)]
    return worlds.pod(f"keyed-{number}", worlds.affinity("podAntiAffinity", *rules))


CASES: dict[str, tuple[int, Callable[[int], Manifest]]] = {
    "30 dry runs with 1,000 terms": (30, repelling),
    "60 dry runs with 1,000 topology keys": (60, keyed),
}


def parsed(manifest: Manifest, limits: Limits | None = None) -> Pod:
    """Parse a pod by a cache of its own, so that only the engine keeps anything of it."""
    text = json.dumps(manifest, separators=(",", ":")).encode()
    return parse_pod(text, TemplateCache(limits=limits), to_place=True).pod


def dry_run(cluster: Cluster, pod: Pod) -> None:
    """Do what a dry run does: place a pod, and undo that."""
    mark = cluster.mark()
    place(cluster, pod, with_reasons=False)
    cluster.put_pod(pod)
    cluster.undo(mark)
    cluster.forget_uncommitted()


def following(cluster: Cluster, count: int = FOLLOWING) -> float:
    """Return the milliseconds of CPU that each pod of a new template takes."""
    pods = [
        parsed(worlds.pod(f"f{n}", labels={"app": f"f{n}"}, millicores=n + 1)) for n in range(count)
    ]
    begun = process_time()
    for pod in pods:
        dry_run(cluster, pod)
    return 1_000 * (process_time() - begun) / count


def leftovers(case: str) -> Leftovers:
    """Return what the dry runs of a case leave on a cluster without pods."""
    runs, make = CASES[case]
    cluster = worlds.empty(NODES)
    following(cluster)
    gc.collect()
    resident, kept = megabytes(), total_bytes(cluster)
    for number in range(runs):
        dry_run(cluster, parsed(make(number), RAISED))
    gc.collect()
    return Leftovers(
        grown=megabytes() - resident,
        kept=(total_bytes(cluster) - kept) / 1e6,
        following=following(cluster),
    )


def pending(pods: int, terms: int) -> float:
    """Return by how many megabytes pending pods with as many terms make the process grow."""
    cluster = worlds.empty(NODES)
    gc.collect()
    before = megabytes()
    for number in range(pods):
        pod = parsed(repelling(number, terms), RAISED)
        place(cluster, pod, with_reasons=False)
        cluster.put_pod(pod)
        cluster.commit_until(cluster.mark())
        cluster.forget_uncommitted()
    gc.collect()
    return megabytes() - before


def megabytes() -> float:
    """Return how much memory the process takes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4_096 / 1e6


def report() -> Iterator[str]:
    """Yield the lines of the figures."""
    yield f"{'case':40} {'process MB':>10} {'engine MB':>10} {'next template ms':>17}"
    # Each figure is of a process of its own: memory that was free before would hide what is taken.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        for name in CASES:
            found = processes.submit(leftovers, name).result()
            yield f"{name:40} {found.grown:10.1f} {found.kept:10.3f} {found.following:17.2f}"
        for terms in (1_000, Limits().pod_terms_max):
            grown = processes.submit(pending, 40, terms).result()
            yield f"40 pending pods with {terms:,} terms: {grown:.0f} MB"
    for name, (_, make) in CASES.items():
        yield f"{name}, with the default limits: {_refusal(make(0))}"


def _refusal(manifest: Manifest) -> str:
    try:
        parsed(manifest)
    except InvalidManifest as error:
        return "; ".join(f"{each.field} {each.message}" for each in error.errors)
    return "not refused"


if __name__ == "__main__":
    for line in report():
        print(line)
