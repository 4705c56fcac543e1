"""Tells a failing run so that a person can follow it."""

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.concurrency.simulation.run import Run
from tests.concurrency.simulation.shrinking import Failed, Shrinking

WIDTH = 150
VIOLATIONS_MAX = 3


class Size(NamedTuple):
    """How much there is to read."""

    workers: int
    clients: int
    requests: int
    """Without those that set the cluster up."""
    setups: int
    deviations: int
    """Callbacks that run before older ones."""
    slow: int
    """Messages that take time."""
    faults: int
    """Statements refused, late or without an answer; hints lost; crashes, stops, clocks that jump."""
    steps: int

    def __str__(self) -> str:
        return (
            f"{self.workers} workers, {self.clients} clients, {self.requests} requests "
            f"(and {self.setups} that set the cluster up), {self.deviations} deviations from the "
            f"order, {self.slow} slow messages, {self.faults} faults, {self.steps} steps"
        )


_FAULT = r".*(/fate|/loses a hint/\d+|/not reached|/answer lost)|(crash|drain|jump)/\d+/at"


def size_of(run: Run) -> Size:
    def count(pattern: str) -> int:
        return sum(re.fullmatch(pattern, name) is not None for name in run.schedule)

    asking = {name.split("/")[0] for name in run.schedule if name.endswith("/ask")} - {"setup"}
    return Size(
        workers=count(r"worker-\d+"),
        clients=len(asking),
        requests=count(r"(?!setup).*/ask"),
        setups=count(r"setup/.*/ask"),
        deviations=count(r".*/passed over/.*"),
        slow=count(r".*/slow/.*"),
        faults=count(_FAULT),
        steps=run.steps,
    )


def account(shrinking: Shrinking) -> str:
    """Before and after, and all that is left."""
    first, now, name = shrinking.first.run, shrinking.now, shrinking.target.invariant
    bound = "" if shrinking.is_complete else ", where a bound ended it"
    lines = (
        f"seed {first.seed} breaks {name}; shrunk in {shrinking.runs} runs{bound}",
        f"  from {size_of(first)}",
        f"  to   {size_of(now.run)}",
        *told(now),
    )
    return "\n".join(lines)


def told(failure: Failed) -> Iterator[str]:
    """What was sent, what went on step by step, and what is wrong with it."""
    schedule = failure.run.schedule
    settings = ", ".join(f"{n}: {v}" for n, v in schedule.items() if _is_setting(n))
    yield "Sent:"
    for name in [each for each in schedule if each.endswith("/ask")]:
        for each in _objects(schedule[name]):
            yield from _wrapped(f"  {name.removesuffix('/ask'):<12} ", each)
    if settings:
        yield from _wrapped("Settings: ", settings)
    yield "Steps:"
    for step, event in failure.run.told:
        yield from _wrapped(f"  {step:>5}  ", event)
    yield "Broken:"
    for violation in failure.violations[:VIOLATIONS_MAX]:
        yield from _wrapped("  ", str(violation))
    if more := failure.violations[VIOLATIONS_MAX:]:
        yield f"  and {len(more)} more"


def _is_setting(name: str) -> bool:
    """Whether nothing else tells of it: not what is asked, nor what befalls that."""
    return re.fullmatch(r"(limits|trouble)/.*|(?!worker-|client-)[^/]*", name) is not None


def _wrapped(head: str, text: str) -> list[str]:
    indent = " " * (len(head) + 2)
    return textwrap.wrap(
        text, WIDTH, initial_indent=head, subsequent_indent=indent, break_long_words=False
    )


def _objects(ask: dict[str, Any]) -> Iterator[str]:
    """What was sent with a request, each object in a line."""
    for manifest in (*ask["manifests"], *ask["objects"]):
        yield _object(manifest)
    if ask["action"] == "config":
        yield f"config {_plain(ask['asked'])}"


def _object(manifest: dict[str, Any]) -> str:
    metadata = manifest["metadata"]
    kind = manifest.get("kind", "Pod")
    name = "/".join(filter(None, (kind, metadata.get("namespace"), metadata["name"])))
    labels = _plain(metadata.get("labels", {}))
    rest = {part: manifest[part] for part in ("spec", "status") if manifest.get(part)}
    return " ".join(filter(None, (name, labels, *map(_plain, map(_without_noise, rest.values())))))


def _without_noise(part: dict[str, Any]) -> dict[str, Any]:
    """Of containers what they ask for; nothing that is empty."""
    own = {name: each for name, each in part.items() if each and name != "containers"}
    asked = [each.get("resources", {}).get("requests") for each in part.get("containers", ())]
    return own | ({"requests": asked[0]} if any(asked) else {})


def _plain(value: Any) -> str:
    return json.dumps(value).replace('"', "") if value else ""
