"""Plant the listed mutants one by one, and tell which of them the tests kill: `python -m tools.mutants`."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from tools.mutants import catalogue, report
from tools.mutants.catalogue import LAYERS, Mutant
from tools.mutants.judging import Verdict, judge, not_passed
from tools.mutants.packing import Imports, count, packs
from tools.mutants.running import SECONDS, Outcome, Tree, tracked


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 1 if a mutant is alive or could not be planted, 2 if there is nothing to go by."""
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
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # the account that runs PostgreSQL for root has to get there
        tree = Tree(Path(folder) / "0", tracked())
        red = _red_without(mutants, tree)
        if red:
            print("These do not pass as the sources are:", *red, sep="\n  ", file=sys.stderr)
            return 2
        trees = [tree, *(tree.copied(Path(folder) / str(n)) for n in range(1, asked.jobs))]
        verdicts = sorted(
            _verdicts(mutants, trees, asked), key=lambda each: mutants.index(each.mutant)
        )
    print(report.table(verdicts), *report.trouble(verdicts), sep="\n")
    if asked.publish:
        report.publish(verdicts)
    return 0 if all(each.is_well for each in verdicts) else 1


def _red_without(mutants: Sequence[Mutant], tree: Tree) -> list[str]:
    """The tests that fail, or are skipped, before anything is planted."""
    tests = list(dict.fromkeys(test for each in mutants for test in each.tests))
    print(f"{len(tests)} tests on the sources as they are", flush=True)
    outcome = tree.run(tests, seconds=3600)
    red = not_passed(mutants, outcome)
    return [*red, outcome.output[-2000:]] if red else []


def _verdicts(
    mutants: Sequence[Mutant], trees: Sequence[Tree], asked: argparse.Namespace
) -> Iterator[Verdict]:
    """Of all mutants as they are known, with a line for each."""
    made = packs(mutants, Imports(), most=1 if asked.alone else 8)
    print(count(made), flush=True)
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def judged(pack: Sequence[Mutant]) -> list[Verdict]:
        tree = free.get()

        def run(planted: Sequence[Mutant], tests: Sequence[str], options: Sequence[str]) -> Outcome:
            with tree.planted(planted):
                return tree.run(tests, 3600 if options else asked.seconds, options)

        try:
            return list(judge(pack, run, whole=asked.whole))
        finally:
            free.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        began = time.monotonic()
        for number, done in enumerate(
            as_completed([pool.submit(judged, each) for each in made]), 1
        ):
            for verdict in done.result():
                print(
                    f"{number}/{len(made)} {time.monotonic() - began:.0f} s "
                    f"{verdict.mutant.layer} {verdict.mutant.name}: {verdict.told}"
                    f"{''.join(f', asleep: {test}' for test in verdict.slept)}",
                    flush=True,
                )
                yield verdict


if __name__ == "__main__":
    sys.exit(main())
