"""The blocks of code of the documentation, run in their order against a real server."""

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from service.server.local_server import LocalServer, temporary_folder
from tests.examples.following import LEFT_OUT, TUTORIAL, blocks, equip, executable, follow, reasons
from tests.paths import ROOT
from tests.waiting import WAIT_SECONDS

SHOWN = {
    "tutorial.md": [r'"action":"Place"', r"db +.*a3", r"didn't match pod anti-affinity rules"],
    "kubernetes.md": [r"node-a1", r"zone-c", r"6 placed"],
    "kubernetes-version.md": [
        r"default/web +a +a +b +NodeResourcesBalancedAllocation \(\+\d+ points\)",
        r"of 3 placed pods would get another node",
        r"kubernetes +\"1.37\"",
    ],
    "migrate.md": [],
    "kube-scheduler-extender.md": [],
    "call-extenders.md": [],
    "batch.md": [r"20 deleted", r"group refused"],
    "edge.md": [r"3 placed", r"riga"],
    "several-clusters.md": [
        r"web-0 +Placed +riga",
        r"web-1 +Placed +oslo",
        r'"cluster": ?"(riga|oslo)"',
        r"AlreadyPlaced",
    ],
    "tenants.md": [r"exceeded quota: compute", r"4 placed, 2 denied"],
    "rebalance.md": [
        r"1 +shop/web-\S+ +node-a\d +node-[bc]\d ",
        r"Skew +11 +0",
        r"rebalance-shop +Running +3 +3 ",
        r'"name": "Skew",\s+"before": 11,\s+"now": 7',
        r"web-\S+ was wanted on (node-\S+) and is on \1",
        r"moved: 6",
        r"rebalance-shop +Cancelled",
    ],
    "several-machines.md": [],
    "replicated-postgresql.md": [],
    "distributed-postgresql.md": [],
    "scale-in.md": [r"web-\d would go", r"web-\d goes from"],
    "rolling-release.md": [
        r"wave 1: shop/web-\S+-\d comes on node-",
        r"replaces the pods",
        r"replace-web-\S+ +Running",
        r'"phase": "Succeeded"',
    ],
    "capacity.md": [
        r"20 more fit\na: 16\nb: 4\nThe next one: 0/3 nodes are available: 3 Insufficient cpu",
        r"9 more fit\na: 5\nb: 4\nThe next one: .* 1 Insufficient cpu, 2 node\(s\) didn't match",
        r"add a node of 4 cpu, 20 pods with the labels topology.kubernetes.io/zone=b",
        r'"fits":11',
    ],
    "release-while-a-zone-is-lost.md": [
        r'"ready":2,"evicted":0,[^]]*"web-ms42hffhm8-1","reason":"NotReady"',
        r'"message": "0/12 nodes are available: .*6 node\(s\) didn\'t match pod topology spread',
        r"zone-b, 2 pods, skew 2 with the pod",
        r"zone-b +4 +3 .*\nzone-c +4 +3 ",
        r"web-\S+ +node-\S+ +PodTopologySpread",
        r"zone-a +4 +2 .*\nzone-b +4 +2 .*\nzone-c +4 +2 ",
    ],
    "repair.md": [
        r"1\. request 1 cpu instead of 2: then it gets small",
        r"3\. leave large no taints: then it gets large",
        r"2\. add a node of 8 cpu, 9 pods: then it gets added-0",
        r'"op":"SetTaints"',
    ],
    "share-objects.md": [r"Node shared-1 applied", r"metadata\.labels\.zone.*is managed by zones"],
    "webhooks.md": [
        *(r'"secret":"whsec_', r'(?<!")whsec_', r"Placed web-0 on node-7", r"answered 204 and 401"),
        *(r"(?m)^orchestrator +active", r"is paused", r'/v2","events":"Bindings","disabled":false'),
    ],
    "drain.md": [r'"status":"Planned"', r"cordoned", r"web-0 is being evicted", r"web-0 is gone"],
}
"""What somebody who follows a page sees at least."""
SHOWN_OF_SAMPLE = {
    "README.md": [r"shop/web-0: on node-", r'"name":"hello".*"outcome":"Placed"'],
    "docs/concepts.md": [
        r'"domains":\[.*"zone-a"',
        r"zone-b +4 ",
        r"zone-c 4 nodes, \d+ pods",
        r'"PodTopologySpread":\{"node-',
        r"node-\S+ +PodTopologySpread +node\(s\) didn't match pod topology spread",
        r"(?m)^node-\S+ node\(s\) didn't match pod topology spread constraints$",
        r'"name":"party-2".*"outcome":"Placed"',
        r"3 placed",
        r"party-2 Placed node-",
        r'"culprits":\[.*"cache-0"',
        r"shop/cache-0, by its own rule",
        r"existing pods anti-affinity rules cache-0",
        r'"kind":"PodList".*"web-0"',
        r"(?m)^web-0 +Placed +node-",
        r"(?m)^web-0 at \d+$",
        r'"attempts":1,.*"racer-1"',
        r'"attempts": 1',
        r"decided at: \d+",
        r"3 deleted",
    ],
    "docs/cluster-configuration.md": [
        *(r'"evictionsPerMinute":30', r'"evictionsPerMinute":60'),
        *(r"evictionsPerMinute +30", r"evictionsPerMinute +60"),
        *(r"'evictionsPerMinute': 60", r"(?m)^30\n60$"),
    ],
    "docs/api-guide.md": [r'"name":"train".*"members":3', r'"unchanged":\d\d'],
}
"""The same of pages that speak of the sample cluster."""
PAGES = [TUTORIAL, *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
WRITTEN = [
    *ROOT.glob("*.md"),
    *(ROOT / folder / "README.md" for folder in ("examples", "clients/typescript")),
    ROOT / "bench" / "RESULTS.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
"""All pages of the documentation."""
READERS = 3
"""How many pages are followed at once."""
Ended = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def server(module_database_url):
    environment = {"MOORAGE_DATABASE_URL": module_database_url}
    with temporary_folder() as folder, LocalServer(folder, environment=environment) as running:
        yield running.url


@pytest.fixture(scope="module")
def sample(server: str) -> str:
    """The server, with the sample cluster in it as `make run` loads it."""
    subprocess.run(
        [sys.executable, "examples/demo.py", "--url", server],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=WAIT_SECONDS,
    )
    return server


@pytest.fixture(scope="module")
def followed(
    request: pytest.FixtureRequest, server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Path, Future[Ended]]]:
    """What came of each page that is asked for; each has a cluster of its own, so some go at once.

    Readers who wait for a plan leave the machine to others.
    """
    items = (each for each in request.session.items if isinstance(each, pytest.Function))
    asked = [each.callspec.params for each in items if "followed" in each.fixturenames]
    pages = [each["page"] for each in asked]
    with ThreadPoolExecutor(READERS) as readers:
        try:
            yield {
                page: readers.submit(_follow, page, server, tmp_path_factory.mktemp(page.stem))
                for page in pages
            }
        finally:
            readers.shutdown(cancel_futures=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_whoever_follows_a_page_gets_to_its_end_and_sees_what_it_says(
    page: Path, followed: dict[Path, Future[Ended]]
) -> None:
    _sees(followed[page].result(), SHOWN[page.name])


@pytest.mark.parametrize("name", SHOWN_OF_SAMPLE)
def test_whoever_asks_the_sample_cluster_as_a_page_does_sees_what_it_says(
    name: str, sample: str, tmp_path: Path
) -> None:
    _sees(_follow(ROOT / name, sample, tmp_path), SHOWN_OF_SAMPLE[name])


def _follow(page: Path, server: str, folder: Path) -> Ended:
    equip(folder)
    return follow(blocks(page), server, folder)


def _sees(ended: Ended, shown: list[str]) -> None:
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for text in shown:
        assert re.search(text, ended.stdout), (text, ended.stdout)


def test_every_block_that_can_be_executed_is_or_has_a_reason_not_to_be():
    followed = {*PAGES, *(ROOT / name for name in SHOWN_OF_SAMPLE)}
    others = [
        (page.relative_to(ROOT).as_posix(), block.text)
        for page in WRITTEN
        if page not in followed
        for block in executable(page.read_text(encoding="utf-8"))
        if not reasons(page, block)
    ]

    assert others == []


def test_every_reason_is_needed():
    needless = [
        (name, part)
        for name, parts in LEFT_OUT.items()
        for part in parts
        if not any(
            part in block.text for block in executable((ROOT / name).read_text(encoding="utf-8"))
        )
    ]

    assert needless == []


@pytest.mark.parametrize(
    ("page", "languages"),
    [
        ("```sh\nmoorage get pods\n```\n", ["sh"]),
        ("```console\nmake run\n```\n", ["sh"]),
        ("```python\nprint()\n```\n", ["python"]),
        ("```\nmoorage get pods\n```\n", ["sh"]),
        ("```\n3 placed\n```\n", []),
        ("1. Do it:\n   ```sh\n   true\n   ```\n", ["sh"]),
        ("```json\n{}\n```\n\n```sh\ntrue\n```\n", ["sh"]),
    ],
)
def test_commands_and_python_can_be_executed_and_answers_cannot(page, languages):
    assert [block.language for block in executable(page)] == languages
