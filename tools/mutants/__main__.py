"""Plant the listed mutants, and say which of them the tests kill: `python -m tools.mutants`."""

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from tools.mutants import catalogue, report
from tools.mutants.catalogue import LAYERS, Mutant
from tools.mutants.judging import Verdict, judge, not_passed
from tools.mutants.packing import Imports, count, packs
from tools.mutants.running import SECONDS, Outcome, Tree, tracked

TEST_SECONDS = 15.0
WHOLE_SECONDS = 3600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and return the exit code.

    It is 1 if a mutant survives or could not be planted, and 2 if the list or the tests are bad.
    """
    asked = _parser().parse_args(arguments)
    mutants = catalogue.chosen(catalogue.read(), asked.names, asked.layer)
    if asked.list:
        for each in mutants:
            print(f"{each.layer:<12}{each.name:<40}{each.title}")
        return 0
    wrong = catalogue.problems(mutants) if mutants else ["there is no such mutant"]
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        return 2
    return _hunt(mutants, asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="names of mutants, with wildcards perhaps; without any: all"
    )
    parser.add_argument("--layer", action="append", default=[], choices=LAYERS)
    parser.add_argument("--jobs", type=int, default=1, help="how many runs of tests at a time")
    parser.add_argument("--alone", action="store_true", help="plant each by itself")
    parser.add_argument("--whole", action="store_true", help="run the whole suite on survivors")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long a run may take")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument(
        "--publish", action="store_true", help="write the table into docs/reliability.md"
    )
    return parser


def _hunt(mutants: Sequence[Mutant], asked: argparse.Namespace) -> int:
    with contextlib.ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True)
        scratch = Path(stack.enter_context(folder))
        scratch.chmod(0o755)  # the account that runs PostgreSQL for root has to get there
        tree = stack.enter_context(closing(Tree(scratch / "0", tracked())))
        clean = _clean(mutants, tree)
        red = not_passed(mutants, clean)
        if red:
            print("These do not pass as the sources are:", *red, sep="\n  ", file=sys.stderr)
            print(clean.output[-2000:], file=sys.stderr)
            return 2
        more = (tree.copied(scratch / str(number)) for number in range(1, asked.jobs))
        trees = [tree, *(stack.enter_context(closing(each)) for each in more)]
        judged = _verdicts(mutants, trees, clean, asked)
        verdicts = sorted(judged, key=lambda each: mutants.index(each.mutant))
    print(report.table(verdicts), *report.trouble(verdicts), sep="\n")
    if asked.publish:
        report.publish(verdicts)
    return 0 if all(each.is_well for each in verdicts) else 1


def _clean(mutants: Sequence[Mutant], tree: Tree) -> Outcome:
    """Run all named tests before anything is planted."""
    tests = list(dict.fromkeys(test for each in mutants for test in each.tests))
    print(f"{len(tests)} tests on the sources as they are", flush=True)
    return tree.run(tests, seconds=3600)


def _verdicts(
    mutants: Sequence[Mutant], trees: Sequence[Tree], clean: Outcome, asked: argparse.Namespace
) -> Iterator[Verdict]:
    """Yield the verdicts of all mutants as soon as they are known, and print a line for each."""
    made = packs(mutants, Imports(), most=1 if asked.alone else 8)
    print(count(made), flush=True)
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def judged(pack: Sequence[Mutant]) -> list[Verdict]:
        tree = free.get()
        try:
            return list(judge(pack, partial(_run, tree, clean, asked.seconds), whole=asked.whole))
        finally:
            free.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        began = time.monotonic()
        futures = as_completed([pool.submit(judged, each) for each in made])
        for number, done in enumerate(futures, 1):
            for verdict in done.result():
                seconds = time.monotonic() - began
                print(f"{number}/{len(made)} {seconds:.0f} s {_line(verdict)}", flush=True)
                yield verdict


def _run(
    tree: Tree,
    clean: Outcome,
    seconds: float,
    planted: Sequence[Mutant],
    tests: Sequence[str],
    options: Sequence[str],
) -> Outcome:
    """Run tests on planted mutants.

    A run that hangs is ended after a few times the duration that it has on clean sources.
    """
    with tree.planted(planted):
        if options:
            return tree.run(tests, WHOLE_SECONDS, options)
        longest = max(clean.seconds.get(test.partition("[")[0], 0.0) for test in tests)
        bound = f"timeout={TEST_SECONDS + 5 * longest:.0f}"
        return tree.run(tests, max(seconds, 10 * longest), ("-o", bound))


def _line(verdict: Verdict) -> str:
    slept = "".join(f", asleep: {test}" for test in verdict.slept)
    return f"{verdict.mutant.layer} {verdict.mutant.name}: {verdict.told}{slept}"


if __name__ == "__main__":
    sys.exit(main())
