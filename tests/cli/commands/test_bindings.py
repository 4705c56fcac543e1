import httpx

from moorage.cli.commands.bindings import show
from moorage.cli.progress.follower import WatchFollower
from moorage.cli.render.output import Format, Output
from moorage.cli.session.options import Session
from tests.cli.conftest import CLUSTER

PLACED = '{"revision":7,"action":"Placed","namespace":"shop","name":"a","uid":"u","nodeName":"n2","previousNodeName":"n1"}'
STREAM = f"""retry: 1000

id: 7
event: PLACED
data: {PLACED}

id: 8
event: TERMINATING
data: {{"revision":8,"action":"Terminating","namespace":"shop","name":"a","uid":"u","nodeName":"n2","reason":"EvictionByEvictionAPI"}}

id: 9
event: BOOKMARK
data: {{"revision":9,"action":"Bookmark"}}

"""


def follower(stub, chosen=Format.TABLE):
    stub.on("GET", f"{CLUSTER}/bindings", httpx.Response(200, text=STREAM))
    session = Session(stub.client(), Output(chosen))
    return WatchFollower(session, {"nodeName": "n2"}, "5", show, path="bindings")


def test_records_are_lines_and_bookmarks_only_remembered(stub, capsys):
    following = follower(stub)

    following.follow()

    assert capsys.readouterr().out.splitlines() == [
        "       7  Placed       shop/a  n2 (from n1)",
        "       8  Terminating  shop/a  n2 EvictionByEvictionAPI",
    ]
    assert dict(stub.requests[0].url.params) == {"nodeName": "n2", "sinceRevision": "5"}
    assert following.last == "9"


def test_records_can_be_had_as_they_are(stub, capsys):
    follower(stub, Format.JSON).follow()
    assert capsys.readouterr().out.splitlines()[0] == PLACED
