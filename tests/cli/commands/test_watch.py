import httpx
import pytest

from moorage.cli.exceptions import Refused, Unavailable
from moorage.cli.progress.follower import WatchFollower
from moorage.cli.render.output import Format, Output
from moorage.cli.session.options import Session
from tests.cli.conftest import CLUSTER

STREAM = """\
: the stream begins

id: 7
event: ADDED
data: {"kind":"Pod","object":{"metadata":{"namespace":"shop","name":"web-0"},"spec":{"nodeName":"node-1"}}}

id: 9
event: BOOKMARK
data: {}

"""


def follower(stub, last=None, chosen=Format.TABLE):
    return WatchFollower(Session(stub.client(), Output(chosen)), {"kind": "Pod"}, last)


def test_changes_are_printed_and_bookmarks_only_remembered(stub, capsys):
    stub.on("GET", f"{CLUSTER}/watch", httpx.Response(200, text=STREAM))
    following = follower(stub, last="5")

    following.follow()

    assert capsys.readouterr().out == "       7  ADDED     Pod shop/web-0  Placed node-1\n"
    assert stub.requests[0].url.params["sinceRevision"] == "5"
    assert following.last == "9"


def test_changes_can_be_had_as_json_lines(stub, capsys):
    stub.on("GET", f"{CLUSTER}/watch", httpx.Response(200, text=STREAM))

    follower(stub, chosen=Format.JSON).follow()

    assert capsys.readouterr().out.startswith(
        '{"revision":7,"event":"ADDED","kind":"Pod","object":{'
    )


def test_characters_that_python_takes_for_ends_of_lines_are_none(stub, capsys):
    stream = 'id: 7\nevent: ADDED\ndata: {"kind":"Node","object":{"metadata":{"name":"n\u2028\x85"}}}\n\n'
    stub.on("GET", f"{CLUSTER}/watch", httpx.Response(200, content=stream.encode()))

    follower(stub, chosen=Format.JSON).follow()

    assert "n\u2028\x85" in capsys.readouterr().out


def test_a_silent_server_is_asked_again(stub, capsys):
    stub.on("GET", f"{CLUSTER}/watch", httpx.ReadTimeout("silence"))

    follower(stub, last="5").follow()

    assert "Trying again" in capsys.readouterr().err


def test_a_stream_that_breaks_is_taken_up_where_it_ended(stub):
    stub.on("GET", f"{CLUSTER}/watch", httpx.Response(200, text=STREAM), httpx.ReadError("reset"))
    following = follower(stub)

    following.follow()
    following.follow()

    assert stub.requests[1].url.params["sinceRevision"] == "9"


def test_without_a_server_from_the_start_the_command_ends(stub):
    stub.on("GET", f"{CLUSTER}/watch", httpx.ConnectError("refused"))

    with pytest.raises(Unavailable):
        follower(stub).follow()


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(410, json={"code": "Compacted", "detail": "Too old."}),
        httpx.Response(
            200, text='event: ERROR\ndata: {"code":"Compacted","detail":"Too old."}\n\n'
        ),
    ],
    ids=["at once", "on the way"],
)
def test_a_compacted_revision_ends_the_command(stub, answer):
    stub.on("GET", f"{CLUSTER}/watch", answer)

    with pytest.raises(Refused, match="Too old"):
        follower(stub, last="1").follow()
