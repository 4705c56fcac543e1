"""Comparing a server's answers with those of kube-scheduler.

A case is one simulation. A trace is replayed as a client would do it: on a cluster of its own, over
HTTP, where each pod is first explained and then bound to the node that kube-scheduler chose.
"""

import json
import secrets
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.exceptions import ExitCode, Refused, WrongUsage
from moorage.cli.input.sources import read_objects
from moorage.cli.render.output import Output
from moorage.cli.session.client import Client
from moorage.cli.session.options import URL_DEFAULT, Token, Url
from service.cli.server_failures import as_command_errors
from service.model.cluster.versions.known import VERSIONS
from service.server.local_server import LocalServer, temporary_folder
from tools.conformance.cases import (
    DOCUMENTED,
    Difference,
    Vector,
    asks_for_preemption,
    by_documentation,
    departures_of,
    group_of,
    is_trace,
    request_of,
    result_differences,
    settings_of,
    step_differences,
)
from tools.conformance.stored_clusters import AT_REST, stored_differences

FAILURES_SHOWN = 20
DIFFERENCES_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of comparing one answer: that to a case, or to a step of a trace."""

    group: str
    version: str
    """The Kubernetes version whose kube-scheduler answered."""
    name: str
    differences: Sequence[Difference]


@dataclass
class Tally:
    """How many answers of a group were compared, and how many of them were equal."""

    checked: int = 0
    passed: int = 0

    def add(self, check: Check) -> None:
        """Count one more answer."""
        self.checked += 1
        self.passed += not check.differences

    @property
    def text(self) -> str:
        """The counts for a table, or "" if nothing was compared."""
        return f"{self.passed} of {self.checked}" if self.checked else ""


NONE = Tally()
Tallies = Mapping[str, Mapping[str, Tally]]
"""The counts by group, then by Kubernetes version."""


def conformance(
    *,
    files: Annotated[list[str], typer.Argument(help="Vectors: JSON Lines, also gzipped.")],
    url: Url = None,
    token: Token = None,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Compare with a server of its own, on a temporary data folder."
        ),
    ] = False,
    stored: Annotated[
        bool,
        typer.Option(
            "--stored",
            help="Ask each case also on a stored cluster, whose objects changed on the way.",
        ),
    ] = False,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write the counts there, as Markdown.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", help="Only vectors whose name contains this.")
    ] = None,
) -> None:
    """Compare a server's answers with kube-scheduler's; the exit code is 0 if all are equal."""
    given = list(read_objects(files))
    vectors = [
        vector
        for vector in (*given, *by_documentation(given))
        if not only or only in str(vector["name"])
    ]
    if not vectors:
        raise WrongUsage("There is no vector to compare with.")
    output = Output()
    with _server(url or URL_DEFAULT, own=serve) as address, Client(address, token=token) as client:
        checks = list(_checks(client, vectors, output, stored=stored))
    tallies = tally(checks)
    _print_failures(output, [check for check in checks if check.differences])
    output.table(("group", *VERSIONS), _rows(tallies))
    if report is not None:
        names = [Path(file).name for file in files]
        report.write_text(render_report(tallies, names, count_departures(vectors), _origin()))
    if any(check.differences for check in checks):
        raise typer.Exit(ExitCode.REFUSED)


def check_case(client: Client, case: Vector) -> Check:
    """Simulate a case, and compare the explanation with the expected one."""
    try:
        answer = client.post("/v1/simulations", request_of(case))
    except Refused as refusal:
        return _check(case, str(case["name"]), [_refused(refusal)])
    return _check(case, str(case["name"]), result_differences(case, answer["results"][0]))


def check_stored_case(client: Client, case: Vector) -> Check:
    """Bring a stored cluster to a case's state by a detour, and compare what it answers."""
    name = f"{case['name']}, stored"
    try:
        return _check(case, name, stored_differences(client, case))
    except Refused as refusal:
        return _check(case, name, [_refused(refusal)])


def replay_trace(client: Client, trace: Vector) -> Iterator[Check]:
    """Replay a trace on a cluster of its own; yield one check for each pod that it schedules."""
    cluster = client.on_cluster(f"conformance-{secrets.token_hex(6)}")
    cluster.put(cluster.path(), {"config": {**settings_of(trace), **AT_REST}})
    try:
        for namespace in trace["namespaces"]:
            _put(cluster, "namespaces", namespace)
        for node in trace["nodes"]:
            _put(cluster, "nodes", node)
        for number, step in enumerate(trace["steps"], start=1):
            yield from _take_step(cluster, trace, number, step)
    finally:
        cluster.delete(cluster.path())


def tally(checks: Sequence[Check]) -> Tallies:
    """Count the answers of each group and version; the groups are in alphabetical order."""
    tallies: defaultdict[str, defaultdict[str, Tally]] = defaultdict(lambda: defaultdict(Tally))
    for check in checks:
        tallies[check.group][check.version].add(check)
    return dict(sorted(tallies.items()))


def count_departures(vectors: Iterable[Vector]) -> Counter[str]:
    """Count the vectors that are asked with a setting other than the default, by setting."""
    return Counter(
        f"{name}: {json.dumps(value)}"
        for vector in vectors
        for name, value in departures_of(vector).items()
    )


def render_report(
    tallies: Tallies, files: Sequence[str], departures: Mapping[str, int], origin: str
) -> str:
    """Write the counts as a page of the documentation; `origin` says of which state they are."""
    changed = "\n".join(f"| `{setting}` | {count} |" for setting, count in departures.items())
    rows = "\n".join(f"| {' | '.join(row)} |" for row in _rows(tallies))
    heads, lines = " | ".join(VERSIONS), "--:|" * len(VERSIONS)
    releases = ", ".join(f"v{version.patch}" for version in VERSIONS.values())
    compared = "\n".join(f"- {file}" for file in files)
    return f"""# Conformance with kube-scheduler

This page compares answers of the server with those of kube-scheduler's own code, of
{releases}: which nodes are feasible, the reasons of every filter on every
node, every score, the best nodes and the message. An answer counts as the same only if every field
is equal. {origin}

A test vector is a case or a trace. A case is asked twice: as a simulation, and as a placement on a
stored cluster that reached the same state by a detour (objects are written in any order, changed
and changed back, deleted and created again). Each step of a trace that schedules a pod is one
placement on a cluster that a client builds over HTTP.

Cases of preemption are asked as simulations alone, as kube-scheduler's answers rest on what the
`status` of disruption budgets says, which a stored cluster works out itself. They compare the
victims on every node where preemption helps, the chosen node, and the words where it does not help.

Kube-scheduler's code departs from what Kubernetes documents in three places
([details](semantics.md#where-code-and-documentation-differ)). Vectors whose
answer depends on that are compared with the code's answers, like all others. They are asked once
more with `kubernetesRules: Documented`, for what the documented rule says: these are the groups
`…-documented` at the end, which are not part of the sum.

There are no vectors for the groups of `scheduling.k8s.io`: these follow Kubernetes' code as we read
it, and are compared with slow references of our own. So are the devices that claims get; their
vectors compare the nodes and the scores. Features behind gates that Kubernetes has off are refused
or answered with a warning; [the table of all fields](manifests.md) has the answer for each.

The vectors come from these files:

{compared}

What a vector does not set itself has its default setting. There are two exceptions, where Moorage
has rules of its own by default that Kubernetes does not have, and a pod of the vector is concerned:
anti-affinity between daemons and other pods ([details](decisions/daemons.md)), and against all
namespaces by a wider key than a node's. On stored clusters pending pods wait for the client, which
binds them to kube-scheduler's nodes (`placePendingPods: false`). Then neither taints nor the
condition of a node end a pod either: vectors are states, in which no time passes. Nodes have no
taints but those of the vector, as kube-scheduler reads no conditions (`nodeConditions: Ignore`).

| setting | vectors |
|---|--:|
{changed}

`make conformance REPORT=docs/conformance.md` writes this page. Anyone can compare any server with
any file of such vectors: in a checkout, `python -m tools.conformance FILE --url …` prints the
differences plugin by plugin, and its exit code is 0 only if every answer is the same.

Each cell says how many answers were the same, of how many.

| group | {heads} |
|---|{lines}
{rows}
"""


def _checks(
    client: Client, vectors: Sequence[Vector], output: Output, *, stored: bool
) -> Iterator[Check]:
    with output.progress() as progress:
        task = progress.add_task("comparing", total=len(vectors))
        for vector in vectors:
            if is_trace(vector):
                yield from replay_trace(client, vector)
            else:
                yield check_case(client, vector)
                if stored and not asks_for_preemption(vector):
                    yield check_stored_case(client, vector)
            progress.advance(task)


def _take_step(cluster: Client, trace: Vector, number: int, step: Vector) -> Iterator[Check]:
    match step["op"]:
        case "schedule":
            found = _schedule(cluster, step)
            yield _check(trace, f"{trace['name']} step {number}", found)
        case "deletePod":
            cluster.delete(cluster.path("namespaces", step["namespace"], "pods", step["name"]))
        case "addNode" | "updateNode":
            _put(cluster, "nodes", step["node"])
        case "deleteNode":
            cluster.delete(cluster.path("nodes", step["name"]))
        case "updateNamespace":
            _put(cluster, "namespaces", step["namespace"])
        case unknown:
            raise WrongUsage(f"{trace['name']} step {number}: no such op: {unknown}.")


def _schedule(cluster: Client, step: Vector) -> Sequence[Difference]:
    """Ask where the pod should go and compare the answer, then bind it where kube-scheduler did."""
    pod, expected = step["pod"], step["expect"]
    question = {"pods": [pod], "dryRun": True, "explain": "Full"}
    found: list[Difference] = []
    try:
        answer = cluster.post(cluster.path("placements"), question)
        found += step_differences(expected, answer["results"][0]["explanation"])
        if expected["chosen"] is not None:
            found += _bind(cluster, pod, expected["chosen"])
    except Refused as refusal:
        found.append(_refused(refusal))
    return found


def _bind(cluster: Client, pod: Vector, node: str) -> list[Difference]:
    """Bind the pod; if Moorage refuses that node, force it, since the next steps rest on it."""
    metadata = pod["metadata"]
    path = cluster.path("namespaces", metadata["namespace"], "pods", metadata["name"])
    cluster.put(path, pod)
    try:
        cluster.post_once(f"{path}/binding", {"target": {"name": node}})
    except Refused as refusal:
        cluster.post_once(f"{path}/binding", {"target": {"name": node}, "force": True})
        return [Difference(field="binding", node=node, expected="bound", got=str(refusal))]
    return []


def _put(cluster: Client, plural: str, item: Vector) -> None:
    cluster.put(cluster.path(plural, item["metadata"]["name"]), item)


def _check(vector: Vector, name: str, found: Sequence[Difference]) -> Check:
    version = settings_of(vector)["kubernetes"]
    return Check(group=group_of(vector), version=version, name=name, differences=found)


def _refused(refusal: Refused) -> Difference:
    return Difference(field="answer", expected="200", got=str(refusal))


def _rows(tallies: Tallies) -> list[tuple[str, ...]]:
    """Return a row for each group, and one for all but those by the documented rules."""
    own = {group: by for group, by in tallies.items() if not group.endswith(DOCUMENTED)}
    total = {version: Tally() for version in VERSIONS}
    for by_version in own.values():
        for version, counts in by_version.items():
            total[version].checked += counts.checked
            total[version].passed += counts.passed
    others = {group: by for group, by in tallies.items() if group not in own}
    groups = [*own.items(), ("all", total), *others.items()]
    return [
        (group, *(by_version.get(version, NONE).text for version in VERSIONS))
        for group, by_version in groups
    ]


def _origin() -> str:
    """Say at which commit and on which day the answers were compared."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    commit = f" at {found.stdout.strip()}" if found.returncode == 0 else ""
    return f"They were compared{commit} on {datetime.now(UTC).date()}."


def _print_failures(output: Output, failures: Sequence[Check]) -> None:
    for check in failures[:FAILURES_SHOWN]:
        output.line(check.name, style="bold")
        for difference in check.differences[:DIFFERENCES_SHOWN]:
            output.prose(f"  {difference.describe()}")
        if len(check.differences) > DIFFERENCES_SHOWN:
            output.line(f"  and {len(check.differences) - DIFFERENCES_SHOWN} more differences")
    if len(failures) > FAILURES_SHOWN:
        output.line(f"and {len(failures) - FAILURES_SHOWN} more answers that differ")
    if failures:
        output.line()


@contextmanager
def _server(url: str, *, own: bool) -> Iterator[str]:
    """Yield the URL of the server to compare with: the given one, or one that runs meanwhile."""
    if not own:
        yield url
        return
    with (
        as_command_errors(),
        temporary_folder() as folder,
        LocalServer(folder / "data") as server,
    ):
        yield server.url
