"""What the planners count of their own work, added up."""

from collections import Counter
from collections.abc import Iterable

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.concurrency.callers import bearer

COMMITS = "moorage_commits_total"
LOST = "moorage_commit_conflicts_total"
REVALIDATED = "moorage_hints_total{kept=true}"
REPLANNED = "moorage_hints_total{kept=false}"
REDECIDED = "moorage_redecisions_total"
_WITH_LABEL = {"moorage_hints_total": "kept"}


def counted(urls: Iterable[str], token: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for url in urls:
        answer = httpx.get(f"{url}/metrics", headers=bearer(token), timeout=30)
        for family in text_string_to_metric_families(answer.raise_for_status().text):
            for sample in family.samples:
                label = _WITH_LABEL.get(sample.name)
                name = f"{sample.name}{{{label}={sample.labels[label]}}}" if label else sample.name
                total[name] += sample.value
    return total
