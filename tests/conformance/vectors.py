"""The conformance vectors of kube-scheduler, and how answers are compared with them."""

import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from service.model.cluster.versions.known import VERSIONS
from tools.conformance.cases import OF_PREEMPTION, by_documentation, objects_of, settings_of

__all__ = [
    "ABSENT",
    "CHUNKS",
    "Case",
    "cases",
    "chunk",
    "config_of",
    "differences",
    "expected",
    "explained",
    "load",
    "objects_of",
    "of_version",
    "report",
    "traces",
    "versions",
]

FOLDER = Path(__file__).parent / "vectors"
CHUNKS = 16
"""The cases are dealt to so many tests, so that parallel workers share them."""

Case = dict[str, Any]
ABSENT = "(absent)"


@cache
def load(name: str) -> tuple[Case, ...]:
    """The cases of one of the files, such as `fuzz_public`."""
    with gzip.open(_path(name), "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def _path(name: str) -> Path:
    return FOLDER / f"{name}.jsonl.gz"


@cache
def cases() -> tuple[Case, ...]:
    """The single decisions: 88 written by hand, all others generated.

    Where kube-scheduler's code and its documentation differ, there is a case for each.
    """
    generated = load("fuzz_public") + load("default_spread_public") + load("volumes_public")
    return _with_documented(generated + load("seed_examples"))


def _with_documented(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    return cases + tuple(map(dict, by_documentation(cases)))


def chunk(number: int) -> tuple[Case, ...]:
    """Every CHUNKS-th case, so that each chunk has some of every kind."""
    return cases()[number::CHUNKS]


def traces() -> tuple[Case, ...]:
    """20 histories, the state carried from step to step."""
    return load("traces_public")


@cache
def preemptions() -> tuple[Case, ...]:
    """600 decisions for pods that fit nowhere, and a case more where code and documentation differ."""
    return _with_documented(load("preemption_public"))


def versions() -> tuple[str, ...]:
    """The Kubernetes versions that have vectors of their own, for all kinds of cases."""
    return tuple(name for name in VERSIONS if _path(f"vectors_{name}").exists())


@cache
def of_version(version: str) -> tuple[Case, ...]:
    """600 decisions of a version, of all families that random cases are drawn from."""
    return _with_documented(load(f"vectors_{version}"))


def explained(case: Case) -> dict[str, Any]:
    """What a case expects, without what it expects of preemption."""
    return {name: value for name, value in expected(case).items() if name not in OF_PREEMPTION}


def config_of(case: Case) -> dict[str, Any]:
    """The cluster configuration under which Moorage behaves exactly as Kubernetes: mostly the default."""
    return settings_of(case)


def expected(case: Case) -> dict[str, Any]:
    """The answer of v1.35.4's code, or of its documentation in a case for that."""
    answer: dict[str, Any] = case["expect"]
    return answer


def differences(got: Mapping[str, Any], want: Mapping[str, Any]) -> list[str]:
    """One line for each field, plugin and node that differs; empty if the answers are equal."""
    return list(_differences("", got, want))


def _differences(path: str, got: Any, want: Any) -> Iterator[str]:
    if not (isinstance(got, Mapping) and isinstance(want, Mapping)):
        if got != want:
            yield f"{path}: got {got!r}, want {want!r}"
        return
    for key in sorted(got.keys() | want.keys()):
        inner = f"{path}.{key}" if path else key
        yield from _differences(inner, got.get(key, ABSENT), want.get(key, ABSENT))


def report(case: Case, got: Mapping[str, Any], want: Mapping[str, Any]) -> str:
    """A page to read on a failed case; empty if it passes."""
    lines = differences(got, want)
    note = case.get("note", "")
    return "\n  ".join([f"{case['name']} {note}", *lines]) if lines else ""
