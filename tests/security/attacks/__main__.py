"""`python -m tests.security.attacks [NAME…]`: a row of a Markdown table for each attack, all if none is named."""

import argparse
import sys

from tests.security.attacks import amounts, silence
from tests.security.attacks.base import (
    ATTACKS,
    HEADING,
    Target,
    damage_of,
    end_with_parent,
    raise_file_limit,
)

__all__ = ["amounts", "silence"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=", ".join(ATTACKS))
    parser.add_argument("--port", type=int, help="attack what listens there, and measure nothing")
    given = parser.parse_args()
    if unknown := set(given.names) - set(ATTACKS):
        parser.error(f"No such attack: {', '.join(sorted(unknown))}")
    raise_file_limit()
    if given.port:
        end_with_parent()
        ATTACKS[given.names[0]].run(Target(given.port))
    else:
        sys.exit(measure(given.names or list(ATTACKS)))


def measure(names: list[str]) -> int:
    """The number of attacks that broke a bound."""
    print(HEADING, flush=True)
    broken = 0
    for name in names:
        damage = damage_of(ATTACKS[name])
        print(damage.row(), flush=True)
        if damage.broken:
            broken += 1
            print(f"{name}: {'; '.join(damage.broken)}", file=sys.stderr)
    return broken


if __name__ == "__main__":
    main()
