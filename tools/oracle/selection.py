"""The cases that are kept as conformance vectors: few, and of everything some.

A case has marks: its family, which filters fail with which reasons, which scores differ between
nodes, and so on. Cases are chosen until each mark has enough of them, the most telling first, and
then evenly over the families.
"""

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.conformance.cases import OF_PREEMPTION, is_trace
from tools.oracle.comparing import has_error
from tools.oracle.generators.families import FAMILIES, generate
from tools.oracle.process import Oracle
from tools.oracle.quirks import documented, without_nominated_terms

Case = dict[str, Any]
Marks = frozenset[str]

SEED = 36
KEPT, MORE = 600, 3_400
"""How many vectors of a version the tests read, and how many more `make conformance` does."""
DRAWN = 400
"""How many cases of each family are drawn to choose from."""
OFTEN = 12
"""How often cases with device claims are asked again."""
ENOUGH = 3
"""How many cases with the same mark are chosen before any for its family alone."""
BYTES_MAX = 60_000
"""The largest case that is kept."""
FEW = 0.3
"""The share of nodes up to which those that are feasible are few."""
ABOUT_PREEMPTION = ("preempting", "nominated", "pre-")
"""The families and groups of vectors whose cases keep what they expect of preemption."""
ELSEWHERE, OTHER = ("vol", "pre", "dspread"), "other"
"""The families of vectors from elsewhere, by the beginning of their names."""
_VARYING = re.compile(r'"[^"]*"|\S*/\S+|\d+')
"""Names and numbers in a reason."""


def answered(version: str, cases: Iterable[Case], workers: int) -> Iterator[Case]:
    """Yield the cases that a version's oracle always answers alike, as vectors with its answers.

    Anti-affinity of nominated pods is left out, since Moorage does not read it as kube-scheduler.
    """
    pool = [case for case in cases if not is_trace(case)]
    rewritten = {case["name"]: found for case in pool if (found := documented(case))}
    with Oracle(version, workers=workers) as oracle:
        answers = list(oracle.answers(pool))
        unsteady = _unsteady(oracle, pool, answers)
        questions = [question for _, question in rewritten.values()]
        rules = {answer["name"]: answer.get("expect") for answer in oracle.answers(questions)}
    for case, answer in zip(pool, answers, strict=True):
        expect = answer.get("expect")
        if expect is None or case["name"] in unsteady or _is_no_verdict(expect):
            continue
        if without_nominated_terms(case) is not None:
            continue
        vector = _vector(version, case, expect)
        names, _ = rewritten.get(case["name"], ((), None))
        rule = rules.get(case["name"])
        if rule is not None and rule != expect:
            vector |= {"quirks": list(names), "expectDocumented": _kept_part(case, rule)}
        yield vector


def _unsteady(oracle: Oracle, pool: Sequence[Case], answers: Sequence[Case]) -> set[str]:
    """Return the names of cases that are answered otherwise when they are asked again.

    Allocations of devices often depend on the order of a map, so such cases are asked more often.
    """
    claiming = [case for case in pool if "resourceClaims" in case]
    again = [*pool, *(case for case in claiming for _ in range(OFTEN))]
    first = {answer["name"]: answer for answer in answers}
    repeated = oracle.answers(again)
    return {answer["name"] for answer in repeated if answer != first[answer["name"]]}


def _is_no_verdict(expect: Case) -> bool:
    """Return whether an answer has an error, or nodes are refused by no plugin of its own.

    The latter is so where two plugins together leave no node.
    """
    names_no_plugin = expect["prefilter"] is not None and not expect["prefilter"]["plugin"]
    return names_no_plugin or has_error(expect)


def _vector(version: str, case: Case, expect: Case) -> Case:
    """Return a case with a version's answer, and without what was said of another answer."""
    given = {k: v for k, v in case.items() if k not in ("expect", "expectDocumented", "quirks")}
    config = {**case["config"], "kubernetes": version}
    return {**given, "config": config, "expect": _kept_part(case, expect)}


def _kept_part(case: Case, expect: Case) -> Case:
    """Return an answer, without what it says of preemption unless the case is about that.

    Vectors that expect nothing of preemption are also put to stored clusters.
    """
    asks = case["name"].startswith(ABOUT_PREEMPTION) or expect.get("preemption") is not None
    return {name: value for name, value in expect.items() if asks or name not in OF_PREEMPTION}


def drawn(seed: int, count: int) -> Iterator[Case]:
    """Yield fresh cases of all families."""
    for number in range(count):
        for family in FAMILIES:
            yield generate(family, seed, number)


def family_of(case: Case) -> str:
    """Return the family of a case; vectors from elsewhere are of a few families."""
    name = case["name"]
    known = (family for family in FAMILIES if name.startswith(f"{family}-"))
    others = (family for family in ELSEWHERE if name.startswith(f"{family}-"))
    return next(known, next(others, OTHER))


def marks_of(case: Case) -> Marks:
    """Return what a case shows."""
    expect, family = case["expect"], family_of(case)
    found = {f"family {family}", f"family {family}, {_share(case)} feasible", *_rejected(expect)}
    for plugin, scores in expect["scores"].items():
        if len(set(scores.values())) > 1:
            found |= {f"{plugin} scores", f"{plugin} scores, family {family}"}
    found |= {f"{plugin} is skipped" for plugin in expect["scoreSkipped"]}
    found |= {f"deviation {name}" for name in case.get("quirks", ())}
    found |= _bound(expect)
    if not OF_PREEMPTION.isdisjoint(expect):
        found |= _preempted(expect)
    return frozenset(found)


def _share(case: Case) -> str:
    feasible, nodes = len(case["expect"]["feasible"]), len(case["nodes"])
    if not feasible:
        return "no node"
    if feasible == nodes:
        return "all nodes"
    return "few nodes" if feasible <= max(1, FEW * nodes) else "several nodes"


def _rejected(expect: Case) -> Iterator[str]:
    rejection = expect["prefilter"]
    if rejection is not None:
        yield f"{rejection['plugin']} rejects all: {_kind(rejection['reasons'][0])}"
    if "prefilterNodes" in expect:
        yield "prefilter names nodes"
    failing = Counter(node for verdicts in expect["filters"].values() for node in verdicts)
    for plugin, verdicts in expect["filters"].items():
        for node, reasons in verdicts.items():
            yield f"{plugin}: {', '.join(map(_kind, reasons))}"
            yield f"{plugin} fails {'alone' if failing[node] == 1 else 'with others'}"
            resolvable = node not in expect["unresolvable"].get(plugin, ())
            yield f"{plugin} is {'resolvable' if resolvable else 'unresolvable'}"


def _kind(reason: str) -> str:
    """Return a reason without the names and numbers in it."""
    return _VARYING.sub("…", reason)


def _bound(expect: Case) -> set[str]:
    by_claim = list(expect.get("bindings", {}).values())
    named = {volume == "provision" for claims in by_claim for volume in claims.values()}
    kinds = {"a claim is provisioned" if made else "a claim is bound" for made in named}
    return kinds | (
        {"claims are bound already"} if any(not claims for claims in by_claim) else set()
    )


def _preempted(expect: Case) -> set[str]:
    if expect["preemption"] is None:
        return {f"no preemption: {_kind(expect['why'] or 'none')}"}
    candidates: Mapping[str, Any] = expect["preemption"]["candidates"]
    found = {f"preemption on {min(len(candidates), 3)} nodes"}
    found |= {f"{min(len(item['victims']), 4)} victims" for item in candidates.values()}
    if any(item["pdbViolations"] for item in candidates.values()):
        found.add("budgets are violated")
    if len(expect["preemption"]["chosen"]) > 1:
        found.add("the choice is tied")
    return found


def select(cases: Sequence[Case], count: int) -> list[Case]:
    """Return this many cases that show all that there is to see, in their order.

    First each mark gets `ENOUGH` cases, always by the case that adds most; then the families get
    more in turn.
    """
    marks = [marks_of(case) for case in cases]
    chosen = dict.fromkeys(_cover(marks, count))
    by_family: defaultdict[str, list[int]] = defaultdict(list)
    for number, case in enumerate(cases):
        if number not in chosen:
            by_family[family_of(case)].append(number)
    taken = Counter(family_of(cases[number]) for number in chosen)
    while len(chosen) < count and any(by_family.values()):
        family = min((name for name, left in by_family.items() if left), key=taken.__getitem__)
        taken[family] += 1
        chosen[by_family[family].pop(0)] = None
    return [cases[number] for number in sorted(chosen)]


def _cover(marks: Sequence[Marks], count: int) -> Iterator[int]:
    """Yield cases while they add to marks that have too few, those that add most first."""
    wanted = Counter({mark: ENOUGH for found in marks for mark in found})
    left = set(range(len(marks)))
    for _ in range(count):
        gain, number = max(
            ((sum(1 for mark in marks[number] if wanted[mark] > 0), -number) for number in left),
            default=(0, 0),
        )
        if not gain:
            return
        left.remove(-number)
        wanted.subtract(marks[-number])
        yield -number


def is_small(case: Case) -> bool:
    """Return whether a case is small enough to be kept."""
    return len(json.dumps(case)) <= BYTES_MAX


def read(paths: Iterable[Path]) -> Iterator[Case]:
    """Yield the vectors of files of JSON Lines, gzipped."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def write(cases: Iterable[Case], path: Path) -> None:
    """Write vectors as gzipped JSON Lines; the same vectors give the same bytes."""
    lines = "".join(f"{json.dumps(case, separators=(',', ':'))}\n" for case in cases)
    path.write_bytes(gzip.compress(lines.encode(), 9, mtime=0))
