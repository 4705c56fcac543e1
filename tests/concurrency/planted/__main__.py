"""`python -m tests.concurrency.planted`: the table of planted bugs and how soon each was found."""

import argparse
import sys

from tests.concurrency.planted import BUGS
from tests.concurrency.planted.hunt import Finding, hunt


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.concurrency.planted")
    parser.add_argument("names", nargs="*", help="bugs; all by default")
    parser.add_argument("--seeds", type=int, default=300, help="at most, for each bug")
    options = parser.parse_args()
    print("| planted bug | breaks | in | seeds | CPU s | told as |")
    print("|---|---|---|---|---|---|")
    lost = 0
    for name in options.names or BUGS:
        finding = hunt(BUGS[name], options.seeds)
        lost += finding.seeds == 0
        print(_row(finding), flush=True)
    return 1 if lost else 0


def _row(finding: Finding) -> str:
    bug = finding.bug
    told = bug.told.rstrip(".")
    seeds = finding.seeds or "not found"
    return (
        f"| {told} | {bug.rule} | `{bug.where}` | {seeds} | {finding.seconds:.1f} | {finding.by} |"
    )


if __name__ == "__main__":
    sys.exit(main())
