"""What the planners count of their own work, added up."""

from collections import Counter
from collections.abc import Iterable

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.concurrency.callers import bearer

COMMITS = "moorage_commits_total"
LOST = "moorage_commit_conflicts_total"
REVALIDATED = "moorage_revalidations_total"
REPLANNED = "moorage_replans_total"
REDECIDED = "moorage_redecisions_total"


def counted(urls: Iterable[str], token: str) -> Counter[str]:
    """Each metric of all planners together, whatever its labels.

    Raises:
        KeyError: no planner has a metric that the report is about.
    """
    total: Counter[str] = Counter()
    for url in urls:
        answer = httpx.get(f"{url}/metrics", headers=bearer(token), timeout=30)
        for family in text_string_to_metric_families(answer.raise_for_status().text):
            for sample in family.samples:
                total[sample.name] += sample.value
    for name in (COMMITS, LOST, REVALIDATED, REPLANNED, REDECIDED):
        if name not in total:
            raise KeyError(name)
    return total
