"""`python -m tests.concurrency.planted`: the table of planted bugs and how soon each was found."""

import argparse
import sys

from tests.concurrency.planted import BUGS
from tests.concurrency.planted.hunt import Finding, hunt, remember


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.concurrency.planted")
    parser.add_argument("names", nargs="*", help="bugs; all by default")
    parser.add_argument("--seeds", type=int, default=300, help="at most, for each bug")
    parser.add_argument("--remember", action="store_true", help="have the tests begin with these")
    options = parser.parse_args()
    print("| planted bug | breaks | in | seeds | CPU s | told as |")
    print("|---|---|---|---|---|---|")
    findings = []
    for name in options.names or BUGS:
        findings.append(hunt(BUGS[name], range(options.seeds)))
        print(_row(findings[-1]), flush=True)
    if options.remember:
        remember(findings)
    return 0 if all(each.seeds for each in findings) else 1


def _row(finding: Finding) -> str:
    bug = finding.bug
    told = bug.told.rstrip(".")
    seeds = finding.seeds or "not found"
    return (
        f"| {told} | {bug.rule} | `{bug.where}` | {seeds} | {finding.seconds:.1f} | {finding.by} |"
    )


if __name__ == "__main__":
    sys.exit(main())
