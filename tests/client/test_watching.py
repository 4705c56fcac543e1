"""Watches that are taken up where they ended, and caches that miss no state that lasts."""

from itertools import islice

import httpx
import msgspec
import pytest
from hypothesis import given, strategies as st

from moorage import AsyncCache, Cache, Change, Event, ExpiredError, Retries, UnreachableError
from moorage.cache_contents import CachedObjects, revision_of
from moorage.events import EventReader, ServerSentEvent
from tests.client.stub import Stub, expired, listed, pod, streamed

BROKEN = httpx.ReadError("reset")
REFUSED = httpx.ConnectError("refused")


@pytest.fixture
def stub() -> Stub:
    return Stub()


def told(changes: list[Change]) -> list[tuple[str, str, int]]:
    return [
        (each.type, each.object["metadata"]["name"], revision_of(each.object)) for each in changes
    ]


def since(stub: Stub) -> list[str | None]:
    watches = (request for request in stub.requests if request.url.path.endswith("/watch"))
    return [request.url.params.get("sinceRevision") for request in watches]


def test_events_are_separated_by_blank_lines_and_may_span_lines_and_pieces():
    reader, stream = (
        EventReader(),
        b"event: ADDED\nid: 3\ndata: {\ndata: }\n\n:comment\n\ndata: x\n\n",
    )
    pieces = [stream[at : at + 5] for at in range(0, len(stream), 5)]

    assert [event for piece in pieces for event in reader.feed(piece)] == [
        ServerSentEvent(id="3", name="ADDED", data="{\n}"),
        ServerSentEvent(id=None, name="message", data="x"),
    ]


def test_an_event_cut_off_in_the_middle_is_not_told():
    assert list(EventReader().feed(b"id: 3\nevent: ADDED\n")) == []


def test_characters_that_python_takes_for_ends_of_lines_are_none():
    [event] = EventReader().feed("data: n\u2028\x85\n\n".encode())
    assert event.data == "n\u2028\x85"


def test_a_watch_is_taken_up_where_it_ended(stub: Stub):
    first = streamed(("ADDED", pod("a", 7)), ("BOOKMARK", 9))
    again = streamed(("DELETED", pod("a", 12)))
    stub.on("GET", "/watch", first, BROKEN, REFUSED, again)

    events = stub.client().watch(since=5, kinds=["Pod"], label_selector="app=web")

    assert [(each.type, each.revision) for each in islice(events, 3)] == [
        ("ADDED", 7),
        ("BOOKMARK", 9),
        ("DELETED", 12),
    ]
    assert since(stub) == ["5", "9", "9", "9"]
    assert stub.requests[0].url.params["kind"] == "Pod"
    assert stub.requests[0].url.params["labelSelector"] == "app=web"


def test_a_watch_waits_for_a_server_only_so_long_but_each_time_anew(stub: Stub):
    stub.on("GET", "/watch", *[REFUSED] * 4, streamed(("BOOKMARK", 9)), REFUSED)
    events = stub.client(Retries(seconds_max=10)).watch(since=5)
    assert next(events).revision == 9
    before = sum(stub.pauses)
    with pytest.raises(UnreachableError):
        next(events)
    assert 0 < before <= 10
    assert 5 < sum(stub.pauses) - before <= 10


@pytest.mark.parametrize("code", ["Compacted", "HistoryReplaced", "GrantsChanged"])
def test_a_watch_says_that_the_log_does_not_reach_back(stub: Stub, code: str):
    stub.on("GET", "/watch", expired(code))
    with pytest.raises(ExpiredError) as raised:
        next(stub.client().watch(since=5))
    assert raised.value.code == code


def test_a_stream_may_say_it_on_the_way(stub: Stub):
    text = 'event: ERROR\ndata: {"code":"Compacted","status":410}\n\n'
    stub.on("GET", "/watch", httpx.Response(200, text=text))
    with pytest.raises(ExpiredError):
        next(stub.client().watch())


def lines(*records: object) -> httpx.Response:
    return httpx.Response(200, content=b"".join(msgspec.json.encode(r) + b"\n" for r in records))


def placed(name: str, revision: int) -> dict[str, object]:
    return {"revision": revision, "action": "Placed", "name": name, "nodeName": "n1"}


def test_a_stream_of_bindings_is_taken_up_where_it_ended(stub: Stub):
    bookmark = {"revision": 9, "action": "Bookmark"}
    cut = httpx.Response(200, content=lines(placed("b", 12)).content + b'{"revision":13,"act')
    stub.on(
        "GET", "/bindings", lines(placed("a", 7), bookmark), BROKEN, cut, lines(placed("c", 13))
    )

    told = stub.client().bindings(since=5, namespace="shop", node_name="n1")

    assert list(islice(told, 4)) == [placed("a", 7), bookmark, placed("b", 12), placed("c", 13)]
    asked = [request.url.params for request in stub.requests]
    assert [each["sinceRevision"] for each in asked] == ["5", "9", "9", "12"]
    assert {(each["namespace"], each["nodeName"]) for each in asked} == {("shop", "n1")}
    assert stub.requests[0].headers["accept"] == "application/x-ndjson"


def test_a_stream_of_bindings_from_the_present_goes_on_from_its_first_bookmark(stub: Stub):
    bookmark = {"revision": 9, "action": "Bookmark"}
    stub.on("GET", "/bindings", lines(bookmark), lines(placed("a", 10)))
    assert len(list(islice(stub.client().bindings(), 2))) == 2
    first, again = (request.url.params.get("sinceRevision") for request in stub.requests)
    assert (first, again) == (None, "9")


def test_a_problem_in_a_stream_of_bindings_is_raised(stub: Stub):
    problem = {"code": "Compacted", "status": 410, "title": "Gone."}
    stub.on("GET", "/bindings", lines(placed("a", 7), problem))
    told = stub.client().bindings(since=5)
    assert next(told)["name"] == "a"
    with pytest.raises(ExpiredError):
        next(told)


def test_a_cache_lists_and_follows(stub: Stub):
    stub.on("GET", "/pods", listed(pod("a", 3), pod("b", 4), revision=5))
    stub.on(
        "GET",
        "/watch",
        streamed(("MODIFIED", pod("a", 6)), ("DELETED", pod("b", 7)), ("ADDED", pod("c", 8))),
    )
    cache = Cache(stub.client().pods)
    assert cache.revision is None

    changes = list(islice(cache.changes(), 5))

    assert told(changes) == [
        ("Added", "a", 3),
        ("Added", "b", 4),
        ("Changed", "a", 6),
        ("Deleted", "b", 7),
        ("Added", "c", 8),
    ]
    assert changes[2].before == pod("a", 3)
    assert (cache.revision, len(cache)) == (8, 2)
    assert (cache.get("a"), cache.get("b")) == (pod("a", 6), None)
    assert cache.get("c", namespace="other") is None
    assert since(stub) == ["5"]


def test_a_cache_lists_anew_when_the_log_is_gone_and_tells_the_differences(stub: Stub):
    old = listed(pod("a", 3), pod("b", 4), pod("same", 5), revision=5)
    new = listed(pod("a", 10), pod("c", 11), pod("same", 5), revision=20)
    stub.on("GET", "/pods", old, new)
    stub.on(
        "GET", "/watch", expired(), streamed(("BOOKMARK", 21)), streamed(("ADDED", pod("d", 22)))
    )
    cache = Cache(stub.client().pods)

    changes = list(islice(cache.changes(), 7))

    assert told(changes[3:]) == [
        ("Changed", "a", 10),
        ("Added", "c", 11),
        ("Deleted", "b", 4),
        ("Added", "d", 22),
    ]
    assert since(stub) == ["5", "20", "21"]


async def test_the_asynchronous_cache_does_the_same(stub: Stub):
    stub.on("GET", "/pods", listed(pod("a", 3), revision=5), listed(revision=9))
    stub.on("GET", "/watch", expired("GrantsChanged"))
    async with stub.async_client() as moorage:
        cache = AsyncCache(moorage.pods, label_selector="app=web")
        changes = []
        async for change in cache.changes():
            changes.append(change)
            if len(changes) == 2:
                break
    assert told(changes) == [("Added", "a", 3), ("Deleted", "a", 3)]
    assert stub.requests[0].url.params["labelSelector"] == "app=web"


def test_a_restored_server_whose_log_ends_earlier_is_listed_anew(stub: Stub):
    early = httpx.Response(503, json={"code": "RevisionNotReached", "status": 503})
    stub.on("GET", "/pods", listed(pod("a", 30), revision=30), listed(pod("a", 3), revision=5))
    stub.on("GET", "/watch", early)
    changes = list(islice(Cache(stub.client().pods).changes(), 2))
    assert told(changes) == [("Added", "a", 30), ("Changed", "a", 3)]


def test_an_iteration_that_was_broken_off_loses_no_change(stub: Stub):
    stub.on("GET", "/pods", listed(pod("a", 3), pod("b", 4), revision=5))
    stub.on("GET", "/watch", streamed(("ADDED", pod("c", 8))))
    cache = Cache(stub.client().pods)
    first = list(islice(cache.changes(), 1))
    assert told(first + list(islice(cache.changes(), 2))) == [
        ("Added", "a", 3),
        ("Added", "b", 4),
        ("Added", "c", 8),
    ]


def test_a_list_that_is_wanted_on_the_way_is_told_before_what_comes_then(stub: Stub):
    stub.on("GET", "/pods", listed(pod("a", 3), revision=5), listed(pod("b", 6), revision=7))
    stub.on("GET", "/watch", streamed(("MODIFIED", pod("a", 6)), ("ADDED", pod("c", 8))))
    cache = Cache(stub.client().pods)
    changes = cache.changes()
    first = list(islice(changes, 2))
    cache.refresh()
    assert told(first + list(islice(changes, 3))) == [
        ("Added", "a", 3),
        ("Changed", "a", 6),
        ("Added", "b", 6),
        ("Deleted", "a", 6),
        ("Added", "c", 8),
    ]


NAMES = ["a", "b", "c"]
STEPS = st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=12)
"""What becomes of which object: it is put, or is deleted if it is there."""


@given(before=STEPS, between=st.tuples(STEPS, STEPS), after=STEPS)
def test_a_cache_becomes_what_is_there_although_pages_are_of_different_revisions(
    before, between, after
):
    """Each page shows the present, and events go on from the revision of the first page."""
    world = World()
    world.do(before)
    start, pages = world.revision, []
    for name, steps in zip(NAMES, [*between, []], strict=True):
        pages += [world.objects[name]] if name in world.objects else []
        world.do(steps)
    world.do(after)
    cached = CachedObjects()

    changes = cached.replace(pages, start)
    for event in world.log[start:]:
        changes += [change] if (change := cached.take(event)) else []

    assert {each["metadata"]["name"]: each for each in cached} == world.objects
    assert cached.revision == world.revision
    assert replayed(changes) == world.objects


class World:
    """What a server would hold, and its log."""

    def __init__(self) -> None:
        self.objects: dict[str, dict] = {}
        self.log: list[Event] = []

    @property
    def revision(self) -> int:
        return len(self.log)

    def do(self, steps: list[tuple[str, bool]]) -> None:
        for name, is_put in steps:
            if is_put:
                kind = "MODIFIED" if name in self.objects else "ADDED"
                self.objects[name] = pod(name, self.revision + 1)
                self._tell(kind, self.objects[name])
            elif name in self.objects:
                self._tell("DELETED", self.objects.pop(name))

    def _tell(self, kind: str, item: dict) -> None:
        self.log.append(Event(type=kind, kind="Pod", object=item, revision=self.revision + 1))


def replayed(changes: list[Change]) -> dict[str, dict]:
    """What somebody who only hears the changes knows; each fits to those before it, and none goes back."""
    known: dict[str, dict] = {}
    for change in changes:
        name = change.object["metadata"]["name"]
        assert change.before == known.get(name)
        assert (change.type == "Added") == (name not in known)
        if change.type == "Changed":
            assert revision_of(change.object) > revision_of(change.before)
        known[name] = change.object
        if change.type == "Deleted":
            del known[name]
    return known
