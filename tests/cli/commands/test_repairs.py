"""`moorage repairs`: each kind of change in words, and when there is nothing to tell."""

from tests.cli.conftest import CLUSTER

PATH = f"{CLUSTER}/namespaces/shop/pods/web-0/repairs"
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
CHANGES = {
    "drop spec.nodeSelector[disk]": {"op": "DropRule", "path": "spec.nodeSelector[disk]"},
    "tolerate gpu=yes:NoSchedule": {"op": "AddToleration", "toleration": TAINT},
    "request 2 cpu instead of 4": {"op": "LowerRequest", "resource": "cpu", "from": "4", "to": "2"},
    "uncordon n1": {"op": "UncordonNodes", "names": ["n1"]},
    "label n1 disk=ssd": {"op": "SetLabels", "names": ["n1"], "labels": {"disk": "ssd"}},
    "leave n1 no taints": {"op": "SetTaints", "names": ["n1"], "taints": []},
    "leave n1 the taints gpu=yes:NoSchedule alone": {
        "op": "SetTaints",
        "names": ["n1"],
        "taints": [TAINT],
    },
    "add a node of 8 cpu, 9 pods with the labels zone=a,disk=ssd": {
        "op": "AddNodes",
        "template": {
            "metadata": {"name": "added", "labels": {"zone": "a", "disk": "ssd"}},
            "spec": {},
            "status": {"allocatable": {"cpu": "8", "pods": "9"}},
        },
        "count": 1,
    },
    "remove shop/a, shop/b": {"op": "RemovePods", "namespace": "shop", "names": ["a", "b"]},
}


def answer(**fields):
    told = {"namespace": "shop", "name": "web-0", "fits": False, "message": "0/2 nodes."}
    return {**told, "repairs": [], "complete": True, "unfinished": None, **fields}


def test_each_kind_of_change_is_told(moorage, stub):
    found = [{"changes": [each], "places": "n1", "why": ""} for each in CHANGES.values()]
    gone = {"namespace": "shop", "to": "n2"}
    found[-1]["moves"] = [{**gone, "name": "a"}, {**gone, "name": "b", "to": None}]
    stub.on("GET", PATH, answer(repairs=found))
    ended = moorage("repairs", "shop/web-0", "--limit", "9")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "shop/web-0 does not fit: 0/2 nodes."
    told = [f"{number}. {each}: then it gets n1" for number, each in enumerate(CHANGES, start=1)]
    assert lines[1:-2] == told
    assert lines[-2:] == [
        "   shop/a then finds room on n2",
        "   shop/b finds no other node",
    ]
    assert stub.requests[-1].url.query == b"limit=9"


def test_without_any_repair_it_is_refused(moorage, stub):
    stub.on("GET", PATH, answer(complete=False, unfinished="The time for the search was over."))
    ended = moorage("repairs", "web-0", "-n", "shop")
    assert ended.code == 1
    assert "No set of so few changes would do." in ended.out
    assert "The time for the search was over." in ended.err


def test_a_pod_that_fits_needs_none(moorage, stub):
    stub.on("GET", PATH, answer(fits=True, message=None))
    assert moorage("repairs", "shop/web-0").out == "shop/web-0 fits as everything is now.\n"


def test_a_pod_in_a_file_need_not_be_stored(moorage, stub, tmp_path):
    file = tmp_path / "pod.yaml"
    file.write_text("metadata: {name: web-0}\nspec: {containers: []}\n")
    unplaced = {"namespace": "shop", "name": "web-0", "message": "0/2 nodes."}
    repair = {"changes": [CHANGES["uncordon n1"]], "places": "n1", "why": ""}
    told = {"revision": 7, "complete": False, "unplaced": [unplaced], "repairs": [repair]}
    stub.on("POST", f"{CLUSTER}/plans", told)
    ended = moorage("repairs", "-f", str(file), "-n", "shop", "--changes-max", "2")
    assert ended.out.splitlines() == [
        "shop/web-0 does not fit: 0/2 nodes.",
        "1. uncordon n1: then it gets n1",
    ]
    pod = {"metadata": {"namespace": "shop", "name": "web-0"}, "spec": {"containers": []}}
    assert stub.sent() == {"goal": {"type": "Fit", "pod": pod, "changesMax": 2}}
    stub.on("POST", f"{CLUSTER}/plans", {**told, "repairs": [], "unfinished": "It was late."})
    ended = moorage("repairs", "-f", str(file), "-o", "json")
    assert (ended.code, ended.json["complete"], ended.json["unfinished"]) == (
        1,
        False,
        "It was late.",
    )
    assert moorage("repairs").code == moorage("repairs", "web-0", "-f", str(file)).code == 2
