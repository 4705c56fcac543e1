"""Previews of changed settings, and Kubernetes versions on the command line."""

from tests.cli.conftest import CLUSTER

DIFFERENCE = {
    "namespace": "shop",
    "name": "web-0",
    "nodeName": "a",
    "before": "a",
    "after": "b",
    "plugin": "NodeResourcesBalancedAllocation",
    "points": 12,
}
ANSWER = {
    "complete": True,
    "compared": 900,
    "differences": [DIFFERENCE, DIFFERENCE | {"plugin": "NodePorts", "points": None}],
    "differencesTotal": 2,
}


def test_a_version_stays_text(moorage, stub):
    stub.on("PATCH", CLUSTER, {"config": {}})
    for written, sent in (("1.36", "1.36"), ("'1.40'", "1.40"), ("null", None)):
        moorage("config", f"kubernetes={written}")
        assert stub.sent() == {"config": {"kubernetes": sent}}


def test_a_preview_lists_the_pods_that_would_be_placed_elsewhere(moorage, stub):
    stub.on("POST", f"{CLUSTER}/plans", ANSWER)
    ended = moorage("config", "kubernetes=1.37", "--preview")
    assert stub.sent() == {
        "changes": [{"op": "SetConfig", "config": {"kubernetes": "1.37"}}],
        "goal": {"type": "Compare"},
    }
    assert [request.method for request in stub.requests] == ["POST"]
    assert (
        "shop/web-0  a      a       b      NodeResourcesBalancedAllocation (+12 points)"
        in ended.out
    )
    assert "NodePorts (refuses a node)" in ended.out
    assert "2 of 900 placed pods would get another node if placed anew." in ended.out
    assert moorage("config", "--preview").code == 2


def test_a_preview_that_was_cut_short_says_so(moorage, stub):
    cut = ANSWER | {"complete": False, "differencesTotal": 7}
    stub.on("POST", f"{CLUSTER}/plans", cut)
    ended = moorage("config", "kubernetes=1.37", "--preview")
    assert "7 of 900" in ended.out
    assert "The first 2 are listed. The time was over before all pods" in ended.out
    assert moorage("config", "kubernetes=1.37", "--preview", "-o", "json").json == cut
