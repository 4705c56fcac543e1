"""What generated expressions of CEL cost: CPU time and memory of each, in a process of its own.

    python -m bench.expressions --count 10000             # as servers do: refused by their estimate, or evaluated
    python -m bench.expressions --count 10000 --unbounded # everything is evaluated

The expressions concatenate, replace, join, format and nest comprehensions over lists of up to 1,000
items; the same seed makes the same ones. An evaluation that takes two seconds or a gigabyte is
stopped and counts as that.
"""

import argparse
import json
import os
import random
import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from service.model.cel.evaluation import Expression, ExpressionError, compiled_by
from service.model.devices.device_selectors import DEVICE, library

LONGEST = 10 * 1024
SECONDS_MAX, BYTES_MAX = 2, 1024**3
DEVICE_VALUE = {"driver": "gpu.example.com", "attributes": {}, "capacity": {}}
BIND_DEPTH_MAX = 28


class Measured(NamedTuple):
    """What one expression cost."""

    kind: str
    text: str
    outcome: str
    milliseconds: float = 0.0
    megabytes: float = 0.0


def generated(count: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Yield kinds and expressions, each that the library compiles."""
    chance = random.Random(seed)
    kinds = list(_KINDS)
    while count:
        kind = kinds[count % len(kinds)]
        text = _KINDS[kind](chance)
        if len(text) <= LONGEST and _compiled(text) is not None:
            count -= 1
            yield kind, text


def _compiled(text: str) -> Expression | None:
    with suppress(ExpressionError):
        return compiled_by(library(), text)
    return None


def _text(chance: random.Random) -> str:
    return json.dumps(chance.choice("abx") * chance.choice([0, 1, 2, 8, 64, 1000]))


def _numbers(chance: random.Random) -> str:
    return f"[{', '.join(['1'] * chance.choice([1, 10, 100, 300, 1000]))}]"


def _texts(chance: random.Random) -> str:
    item = json.dumps("a" * chance.choice([1, 4]))
    return f"[{', '.join([item] * chance.choice([1, 10, 100, 1000]))}]"


def _bound(depth: int, first: str, growth: Callable[[str], str], last: Callable[[str], str]) -> str:
    names = [f"v{number}" for number in range(depth)]
    bindings = [f"cel.bind(v0, {first}, "]
    bindings += [f"cel.bind({name}, {growth(before)}, " for before, name in pairwise(names)]
    return f"{''.join(bindings)}{last(names[-1])}{')' * depth}"


def _ending(chance: random.Random) -> Callable[[str], str]:
    ending = chance.choice(
        ["{} == {}", "{}.size() > 3", '{}.contains("ab")', "{}.lowerAscii() != {}"]
    )
    return lambda name: ending.replace("{}", name)


def concatenation(chance: random.Random) -> str:
    """Texts that double."""
    times = chance.choice([2, 2, 3, 4])
    depth = chance.randint(1, BIND_DEPTH_MAX)
    return _bound(depth, _text(chance), lambda name: " + ".join([name] * times), _ending(chance))


def replacement(chance: random.Random) -> str:
    """Texts in which everything is replaced by something longer."""
    old = chance.choice(['""', '"a"', '"aa"'])
    new = chance.choice([_text(chance), "{}"])
    depth = chance.randint(1, 12)
    return _bound(
        depth,
        _text(chance),
        lambda name: f"{name}.replace({old}, {new.replace('{}', name)})",
        _ending(chance),
    )


def joining(chance: random.Random) -> str:
    """Lists that are joined, split, and joined again."""
    depth = chance.randint(1, 4)
    between = _text(chance)
    first = f"{_texts(chance)}.join({between})"
    step = chance.choice(['{}.split("").join({b})', "[{}, {}, {}].join({b})", "[{}].join({}) + {}"])
    return _bound(
        depth, first, lambda name: step.replace("{}", name).replace("{b}", between), _ending(chance)
    )


def formatting(chance: random.Random) -> str:
    """Texts that are formatted into each other, and lists of lists."""
    depth = chance.randint(1, 20)
    if chance.random() < 1 / 3:
        return _bound(
            depth,
            _texts(chance),
            lambda name: f"[{name}, {name}]",
            lambda name: f'"%s".format([{name}]).size() > 3',
        )
    form = json.dumps("%s-" * chance.choice([1, 2, 3, 8]))
    count = form.count("%s")
    return _bound(
        depth,
        _text(chance),
        lambda name: f"{form}.format([{', '.join([name] * count)}])",
        _ending(chance),
    )


def comprehension(chance: random.Random) -> str:
    """Loops in loops over lists of up to 1,000 items."""
    depth = chance.randint(1, 4)
    kinds = [
        "l.all({x}, {body})",
        "l.exists({x}, !({body}))",
        "l.map({x}, {body}).size() > 1",
        "l.filter({x}, {body}).size() > 1",
        "l.map({x}, [{x}, {x}]).map({x}, {x} + {x}).all({x}, {body})",
    ]
    inner = chance.choice(
        ["x0 == 1", '"a{}b".replace("a", "bb") == "c"', "[x0, x0] == [x0]", '"ab".matches("a+b*")']
    )
    for level in range(depth):
        inner = chance.choice(kinds).replace("{x}", f"x{level}").replace("{body}", inner)
    return f"cel.bind(l, {_numbers(chance)}, {inner})"


_KINDS: dict[str, Callable[[random.Random], str]] = {
    "concatenation": concatenation,
    "replace": replacement,
    "join": joining,
    "format": formatting,
    "comprehension": comprehension,
}


def measured(kind: str, text: str, *, unbounded: bool) -> Measured:
    """Evaluate one expression in a process of its own, unless its estimate refuses it."""
    expression = _compiled(text)
    assert expression is not None
    if not unbounded and expression.costs({"device": DEVICE}).is_too_much:
        return Measured(kind, text, "refused")
    source, target = os.pipe()
    child = os.fork()
    if not child:
        _evaluate(expression, target)
    os.close(target)
    with os.fdopen(source) as told:
        said = told.read()
    _, status = os.waitpid(child, 0)
    if not said:
        how = "time" if os.WTERMSIG(status) == signal.SIGXCPU else "memory"
        return Measured(kind, text, f"stopped for {how}", SECONDS_MAX * 1000, BYTES_MAX / 1e6)
    outcome, milliseconds, megabytes = json.loads(said)
    return Measured(kind, text, outcome, milliseconds, megabytes)


def _evaluate(expression: Expression, target: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MAX, SECONDS_MAX + 1))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES_MAX, BYTES_MAX))
    memory, before = _peak_bytes(), resource.getrusage(resource.RUSAGE_SELF)
    try:
        outcome = "true" if expression.holds({"device": DEVICE_VALUE}) else "false"
    except ExpressionError:
        outcome = "error"
    except MemoryError:
        os._exit(1)
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    grown = (_peak_bytes() - memory) / 1e6
    os.write(target, json.dumps([outcome, seconds * 1000, grown]).encode())
    os._exit(0)


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = [each for each in lines if each.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def main() -> None:
    """Measure, and print the most that any expression of each kind cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unbounded", action="store_true")
    options = parser.parse_args()
    found = [
        measured(kind, text, unbounded=options.unbounded)
        for kind, text in generated(options.count, options.seed)
    ]
    print("kind             n  refused  stopped  ms max  MB max  over 50 ms or 64 MB")
    for kind in _KINDS:
        own = [each for each in found if each.kind == kind]
        counts = Counter(each.outcome.split()[0] for each in own)
        slow = max(each.milliseconds for each in own)
        large = max(each.megabytes for each in own)
        over = sum(each.milliseconds > 50 or each.megabytes > 64 for each in own)
        print(
            f"{kind:13} {len(own):5}  {counts['refused']:7}  {counts['stopped']:7}  {slow:6.1f}  {large:6.1f}  {over}"
        )


if __name__ == "__main__":
    main()
