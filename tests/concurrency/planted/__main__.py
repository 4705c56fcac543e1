"""`python -m tests.concurrency.planted`: the table of planted bugs and how soon each was found.

With `--shrink NAME …`: how small what finds them gets.
"""

import argparse
import sys
from pathlib import Path

from tests.concurrency.planted import BUGS
from tests.concurrency.planted.hunt import Finding, Shrunk, hunt, remember, shrunk_of
from tests.concurrency.simulation.account import account, size_of
from tests.concurrency.simulation.reproducer import Reproducer
from tests.concurrency.simulation.shrinking import Failed, add_shrinking


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.concurrency.planted")
    parser.add_argument("names", nargs="*", help="bugs; all by default")
    parser.add_argument("--seeds", type=int, default=300, help="at most, for each bug")
    parser.add_argument("--remember", action="store_true", help="have the tests begin with these")
    parser.add_argument("--shrink", action="store_true", help="shrink what finds them, and tell it")
    add_shrinking(parser)
    options = parser.parse_args()
    if options.shrink:
        return _shrink_all(options)
    print("| planted bug | breaks | in | seeds | CPU s | told as |")
    print("|---|---|---|---|---|---|")
    findings = []
    for name in options.names or BUGS:
        findings.append(hunt(BUGS[name], range(options.seeds)))
        print(_row(findings[-1]), flush=True)
    if options.remember:
        remember(findings)
    return 0 if all(each.seeds for each in findings) else 1


def _shrink_all(options: argparse.Namespace) -> int:
    bounds = {"runs_max": options.shrink_runs, "seconds_max": options.shrink_seconds}
    shrunk = []
    for name in options.names or BUGS:
        shrunk.append(shrunk_of(BUGS[name], range(options.seeds), **bounds))
        _tell(shrunk[-1], options.schedules)
    print("| planted bug | | workers | clients | requests | deviations | slow | faults | steps |")
    print("|---|---|---|---|---|---|---|---|---|")
    for bug, shrinking, _ in shrunk:
        print(f"| {bug.told.rstrip('.')} | before | {_cells(shrinking.first)} |")
        print(f"| `{bug.name}`, {shrinking.runs} runs | after | {_cells(shrinking.now)} |")
    return 0 if all(each.is_the_bug for each in shrunk) else 1


def _tell(shrunk: Shrunk, schedules: Path) -> None:
    bug, shrinking, is_the_bug = shrunk
    path = Reproducer.of(shrinking.now, bug.name).save(schedules)
    print(f"{bug.name}: {account(shrinking)}")
    print(f"Without the mistake {'nothing is broken' if is_the_bug else 'it is broken, too'}.")
    print(f"Again: python -m tests.concurrency.simulation --replay {path}\n", flush=True)


def _cells(failed: Failed) -> str:
    size = size_of(failed.run)
    requests = f"{size.requests} + {size.setups}"
    cells = (size.workers, size.clients, requests, size.deviations, size.slow, size.faults)
    return " | ".join(
        f"{each:,}" if isinstance(each, int) else each for each in (*cells, size.steps)
    )


def _row(finding: Finding) -> str:
    bug = finding.bug
    told = bug.told.rstrip(".")
    seeds = finding.seeds or "not found"
    return (
        f"| {told} | {bug.rule} | `{bug.where}` | {seeds} | {finding.seconds:.1f} | {finding.by} |"
    )


if __name__ == "__main__":
    sys.exit(main())
