"""Many rolling releases with kills, lost zones and a failing store: `python -m tests.concurrency.many_releases`.

Each is a history of `test_releases`, whose whole log the slow reference judges. What is wrong is printed
with its seed, and at the end how much was done.
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from itertools import count

from tests.concurrency.test_releases import history, judged
from tools.ledger import Campaign, add_ledger

SEED_MAX = 10**9


async def release(seed: int) -> Counter[str]:
    """Carry out one release, print what was wrong, and return how much was done."""
    changes, plan, left = await history(seed)
    status, wrongs = plan["status"], judged(changes)
    if not all(each.startswith("v2-") for each in left):
        wrongs.append(f"pods are left: {left}")
    for each in wrongs:
        print(f"FAILED with the seed {seed}: {each}")
    done = {name: status[name] for name in ("waves", "evicted", "placed")}
    done |= {"releases": 1, "revisions": changes[-1].revision, "wrong": len(wrongs)}
    return Counter(done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="begin no release after so many")
    parser.add_argument("--first", type=int, help="the first seed; others follow")
    add_ledger(parser)
    options = parser.parse_args()
    campaign = Campaign("releases", options.ledger)
    first = options.first or random.SystemRandom().randrange(1, SEED_MAX)
    end = time.monotonic() + 60 * options.minutes
    totals = Counter[str]()
    for seed in count(first):
        totals += asyncio.run(release(seed))
        if time.monotonic() > end:
            break
    campaign.add(
        seeds=f"{first} to {seed}",
        faults=2 * totals["releases"],  # a worker is killed in each, and a zone is lost
        placements=totals["placed"],
        steps=totals["evicted"] + totals["placed"],
        violations=totals["wrong"],
    )
    print(f"From the seed {first} on: {dict(totals)}, {totals['wrong']} wrong")
    sys.exit(bool(totals["wrong"]))


if __name__ == "__main__":
    main()
