"""P1, P2, P4, P6, P11 and P16, on every store: what a commit does, and when it does nothing."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from service.model.core.errors import NotFound, OutcomeUnknown
from service.model.log.commit import (
    LOCKED_LAG_CHANGES_MAX,
    CommitRequest,
    Diverged,
    Head,
    IdempotencyKey,
    LogPage,
    ObjectRow,
    ReplicaMismatch,
)
from service.model.log.lease import HeldLeases
from service.model.log.pages import PAGE_BYTES_MAX
from service.model.log.results import Behind, Committed, DuplicateKey, LeasesEnded, Lost, NotYet
from tests.store.history import (
    AnyStore,
    answer,
    commit_on,
    committed,
    create,
    delete,
    names,
    new_id,
    put,
    rows,
    whole_log,
)


async def test_p1_a_commit_moves_the_head_writes_the_log_and_the_objects(
    store: AnyStore, cluster_id: int
):
    before = await store.log.head(cluster_id)
    request = commit_on(
        before, create("a", node_name="n1"), create("n1", kind="Node", namespace="")
    )
    result = await store.log.commit(cluster_id, request)
    assert isinstance(result, Committed)
    assert (result.head.revision, result.head.tip) == (3, request.commit_id)
    assert result.head == await store.log.head(cluster_id)
    page = await store.log.read(cluster_id, 1, before.tip, 100)
    assert isinstance(page, LogPage)
    assert list(page.changes) == list(request.changes)
    assert await rows(store, cluster_id) == [
        ObjectRow(
            kind="Node", namespace="", name="n1", uid="uid-of-n1", revision=3, body=b'{"name":"n1"}'
        ),
        ObjectRow(
            kind="Pod",
            namespace="default",
            name="a",
            uid="uid-of-a",
            revision=2,
            body=b'{"name":"a"}',
            node_name="n1",
        ),
    ]


@pytest.mark.parametrize("stale", ["revision", "tip"])
async def test_p1_a_commit_on_another_head_is_lost_and_told_where_the_head_is(
    store: AnyStore, cluster_id: int, stale: str
):
    head = await committed(store, cluster_id, create("a"))
    known = Head(head.revision, new_id(), head.at)
    if stale == "revision":
        known = Head(head.revision - 1, head.tip, head.at)
    assert await store.log.commit(cluster_id, commit_on(known, create("b"))) == Lost(head)
    assert await names(store, cluster_id) == ["a"]
    assert (await whole_log(store, cluster_id)).revision == head.revision


async def test_p1_time_never_runs_backwards_between_commits(store: AnyStore, cluster_id: int):
    heads = [await committed(store, cluster_id, create(f"pod-{number}")) for number in range(5)]
    times = [head.at for head in heads]
    assert times == sorted(times)
    assert [commit.at for commit in (await whole_log(store, cluster_id)).commits[1:]] == times


async def test_p1_namesakes_of_other_namespaces_and_kinds_are_left_alone(
    store: AnyStore, cluster_id: int
):
    others = (create("a", namespace="other"), create("a", kind="ResourceQuota"))
    await committed(store, cluster_id, create("a"), *others)
    await committed(store, cluster_id, put("a", body=b"new"))
    kept = [row for row in await rows(store, cluster_id) if row.body != b"new"]
    assert [(row.kind, row.namespace) for row in kept] == [
        ("Pod", "other"),
        ("ResourceQuota", "default"),
    ]
    await committed(store, cluster_id, delete("a"))
    assert await rows(store, cluster_id) == kept


async def test_p9_the_log_keeps_where_a_commit_was_planned_and_all_that_its_changes_say(
    store: AnyStore, cluster_id: int
):
    planned = await committed(store, cluster_id, create("a"))
    head = await committed(store, cluster_id, create("b"))
    fields = {"labels_before": b'{"app":"web"}', "fields_before": b'{"spec.nodeName":""}'}
    change = put("a", node_name="n1", **fields)
    unaltered, unknown = put("b", fields_before=b""), put("a", node_name="n1")
    request = commit_on(head, change, unaltered, unknown, planned_at=planned.revision)
    assert isinstance(await store.log.commit(cluster_id, request), Committed)
    page = await store.log.read(cluster_id, head.revision, head.tip, 100)
    assert isinstance(page, LogPage)
    assert list(page.changes) == list(request.changes)
    assert [commit.planned_at for commit in page.commits[-1:]] == [planned.revision]


async def test_p1_updates_and_deletes_replace_and_remove_rows(store: AnyStore, cluster_id: int):
    await committed(store, cluster_id, create("a"), create("b"))
    moved = put("a", node_name="n2", uid="other", body=b"{}", labels_before=b'{"app":"web"}')
    head = await committed(store, cluster_id, moved, delete("b"))
    (row,) = await rows(store, cluster_id)
    assert (row.name, row.node_name, row.uid, row.body) == ("a", "n2", "other", b"{}")
    assert row.revision == head.revision - 1
    last = (await whole_log(store, cluster_id)).changes[-2:]
    assert [(change.verb, change.labels_before) for change in last] == [
        ("Put", b'{"app":"web"}'),
        ("Delete", None),
    ]


@pytest.mark.parametrize(
    "change",
    [create("there"), put("absent"), delete("absent")],
    ids=["create-what-is-there", "update-what-is-absent", "delete-what-is-absent"],
)
async def test_p1_what_is_stored_is_not_what_was_expected(store: AnyStore, cluster_id: int, change):
    head = await committed(store, cluster_id, create("there"))
    with pytest.raises(ReplicaMismatch):
        await store.log.commit(cluster_id, commit_on(head, create("new"), change))
    assert await store.log.head(cluster_id) == head
    assert await names(store, cluster_id) == ["there"]


async def test_p2_of_several_changes_to_one_object_the_table_gets_the_last_and_the_log_all(
    store: AnyStore, cluster_id: int
):
    await committed(store, cluster_id, create("old"), create("gone"))
    head = await committed(
        store,
        cluster_id,
        create("brief"),
        put("old", body=b"1"),
        delete("brief"),
        delete("gone"),
        create("gone", uid="again"),
        put("old", body=b"2"),
    )
    present = {row.name: row for row in await rows(store, cluster_id)}
    assert sorted(present) == ["gone", "old"]
    assert (present["old"].body, present["old"].revision) == (b"2", head.revision)
    assert (present["gone"].uid, present["gone"].revision) == ("again", head.revision - 1)
    assert len((await whole_log(store, cluster_id)).changes) == head.revision


async def test_p2_changes_that_contradict_one_another_are_refused(store: AnyStore, cluster_id: int):
    head = await store.log.head(cluster_id)
    with pytest.raises(ReplicaMismatch):
        await store.log.commit(cluster_id, commit_on(head, create("a"), create("a")))
    with pytest.raises(ReplicaMismatch):
        await store.log.commit(cluster_id, commit_on(head, create("a"), delete("a"), put("a")))


async def test_p4_settling_kills_an_attempt_that_has_not_arrived(store: AnyStore, cluster_id: int):
    head = await committed(store, cluster_id, create("a"))
    attempt = commit_on(head, create("b"))
    verdict = await store.log.settle_unknown(cluster_id, attempt)
    assert isinstance(verdict, Lost)
    assert verdict.head.revision == head.revision
    assert verdict.head.tip != head.tip
    assert await store.log.commit(cluster_id, attempt) == Lost(verdict.head)
    assert await names(store, cluster_id) == ["a"]


async def test_p4_settling_finds_an_attempt_that_was_committed(store: AnyStore, cluster_id: int):
    attempt = commit_on(await store.log.head(cluster_id), create("a"), create("b"))
    result = await store.log.commit(cluster_id, attempt)
    await committed(store, cluster_id, create("later"))
    assert await store.log.settle_unknown(cluster_id, attempt) == result


async def test_p4_settling_tells_an_attempt_that_lost_its_race(store: AnyStore, cluster_id: int):
    attempt = commit_on(await store.log.head(cluster_id), create("a"))
    head = await committed(store, cluster_id, create("b"))
    assert await store.log.settle_unknown(cluster_id, attempt) == Lost(head)


async def test_p4_settling_twice_fences_once(store: AnyStore, cluster_id: int):
    """A second fence would kill what others have on its way on top of the first."""
    attempt = commit_on(await store.log.head(cluster_id), create("a"))
    verdict = await store.log.settle_unknown(cluster_id, attempt)
    assert await store.log.settle_unknown(cluster_id, attempt) == verdict
    assert await store.log.head(cluster_id) == verdict.head


async def test_p4_it_stays_unknown_once_the_log_is_compacted(store: AnyStore, cluster_id: int):
    attempt = commit_on(await store.log.head(cluster_id), create("a"))
    await committed(store, cluster_id, create("b"), create("c"))
    await store.housekeeping.compact(cluster_id, keep_changes=0, keep_seconds=0)
    with pytest.raises(OutcomeUnknown):
        await store.log.settle_unknown(cluster_id, attempt)


async def test_p4_it_is_known_as_long_as_the_log_leads_on_from_where_it_began(
    store: AnyStore, cluster_id: int
):
    """The floor may have come to the revision that the attempt stands on, but not passed it."""
    attempt = commit_on(await committed(store, cluster_id, create("a")), create("x"))
    head = await committed(store, cluster_id, create("b"))
    for keep_changes, floor in ((1, 2), (0, 3)):
        compacted = await store.housekeeping.compact(
            cluster_id, keep_changes=keep_changes, keep_seconds=0
        )
        assert compacted == (floor, True)
        if floor == attempt.expected_revision:
            assert await store.log.settle_unknown(cluster_id, attempt) == Lost(head)
    with pytest.raises(OutcomeUnknown):
        await store.log.settle_unknown(cluster_id, attempt)


async def test_p4_settling_again_moves_nothing(store: AnyStore, cluster_id: int):
    """P3: the revision is still that of the attempt, but not the tip: it is another's history now."""
    head = await committed(store, cluster_id, create("a"))
    attempt = commit_on(head, create("b"), idempotency=[answer("k")])
    fenced = await store.log.settle_unknown(cluster_id, attempt)
    assert fenced.head.revision == head.revision
    assert await store.log.settle_unknown(cluster_id, attempt) == fenced
    assert await store.log.record_answers(cluster_id, head, [answer("k")]) == fenced
    assert await store.log.find_answers(cluster_id, [answer("k").id]) == ()
    locked = await store.log.commit_locked(cluster_id, head.revision, head.tip, lambda _: attempt)
    assert locked == fenced
    assert await store.log.head(cluster_id) == fenced.head


async def test_p4_readers_follow_the_chain_across_a_fence(store: AnyStore, cluster_id: int):
    head = await committed(store, cluster_id, create("a"))
    for _ in range(2):
        fenced = await store.log.settle_unknown(
            cluster_id, commit_on(await store.log.head(cluster_id), create("b"))
        )
    caught_up = await store.log.read(cluster_id, head.revision, head.tip, 100)
    assert isinstance(caught_up, LogPage)
    assert (caught_up.revision, caught_up.tip) == (head.revision, fenced.head.tip)
    last = await committed(store, cluster_id, create("c"))
    page = await store.log.read(cluster_id, head.revision, head.tip, 100)
    assert isinstance(page, LogPage)
    assert (page.revision, page.tip) == (last.revision, last.tip)
    assert [change.name for change in page.changes] == ["c"]


async def test_p6_the_lock_shows_the_log_and_commits_what_is_decided(
    store: AnyStore, cluster_id: int
):
    known = await store.log.head(cluster_id)
    head = await committed(store, cluster_id, create("theirs"))
    seen: list[LogPage] = []

    def decide(page: LogPage) -> CommitRequest:
        seen.append(page)
        return commit_on(page.head, create("ours"))

    result = await store.log.commit_locked(cluster_id, known.revision, known.tip, decide)
    assert isinstance(result, Committed)
    assert seen[0].head == head
    assert [change.name for change in seen[0].changes] == ["theirs"]
    assert await names(store, cluster_id) == ["ours", "theirs"]
    assert await store.log.head(cluster_id) == result.head


async def test_p6_deciding_not_to_commit_gives_the_lock_back(store: AnyStore, cluster_id: int):
    head = await store.log.head(cluster_id)
    assert (
        await store.log.commit_locked(cluster_id, head.revision, head.tip, lambda _: None) is None
    )
    await committed(store, cluster_id, create("a"))


async def test_p6_what_deciding_raises_is_raised_and_nothing_is_committed(
    store: AnyStore, cluster_id: int
):
    head = await store.log.head(cluster_id)

    def decide(_: LogPage) -> CommitRequest:
        raise KeyError("web")

    with pytest.raises(KeyError):
        await store.log.commit_locked(cluster_id, head.revision, head.tip, decide)
    assert await store.log.head(cluster_id) == head
    await committed(store, cluster_id, create("a"))


async def test_p6_who_is_far_behind_is_not_let_decide(store: AnyStore, cluster_id: int):
    known = await store.log.head(cluster_id)
    many = [create(f"pod-{number}") for number in range(LOCKED_LAG_CHANGES_MAX + 1)]
    head = await committed(store, cluster_id, *many)
    decided = await store.log.commit_locked(
        cluster_id, known.revision, known.tip, lambda page: pytest.fail(str(page.revision))
    )
    assert decided == Behind(head)


async def test_p6_who_is_far_behind_in_bytes_is_not_let_decide(store: AnyStore, cluster_id: int):
    known = await store.log.head(cluster_id)
    for name in "ab":
        head = await committed(store, cluster_id, create(name, body=b"x" * PAGE_BYTES_MAX))
    decided = await store.log.commit_locked(
        cluster_id, known.revision, known.tip, lambda page: pytest.fail(str(page.revision))
    )
    assert decided == Behind(head)


async def test_p6_who_is_as_far_behind_as_allowed_decides(store: AnyStore, cluster_id: int):
    known = await store.log.head(cluster_id)
    many = [create(f"pod-{number}") for number in range(LOCKED_LAG_CHANGES_MAX)]
    head = await committed(store, cluster_id, *many)
    seen: list[int] = []
    await store.log.commit_locked(
        cluster_id, known.revision, known.tip, lambda page: seen.append(page.revision)
    )
    assert seen == [head.revision]


async def test_p6_a_tip_of_another_history_is_told_under_the_lock(store: AnyStore, cluster_id: int):
    head = await committed(store, cluster_id, create("a"))
    result = await store.log.commit_locked(cluster_id, head.revision, new_id(), lambda _: None)
    assert result == Diverged(head, 0)


async def test_p11_a_record_is_committed_with_its_changes(store: AnyStore, cluster_id: int):
    record = answer("k1")
    await committed(store, cluster_id, create("a"), idempotency=[record])
    assert await store.log.find_answers(cluster_id, [record.id, answer("k2").id]) == (record,)


async def test_p11_a_key_that_has_an_answer_stops_the_whole_commit(
    store: AnyStore, cluster_id: int
):
    first, second = answer("k1"), answer("k2")
    head = await committed(store, cluster_id, create("a"), idempotency=[first])
    request = commit_on(head, create("b"), idempotency=[second, first])
    assert await store.log.commit(cluster_id, request) == DuplicateKey((first,))
    assert await names(store, cluster_id) == ["a"]
    assert await store.log.find_answers(cluster_id, [second.id]) == ()
    locked = await store.log.commit_locked(cluster_id, head.revision, head.tip, lambda _: request)
    assert locked == DuplicateKey((first,))
    assert await store.log.head(cluster_id) == head


async def test_p11_keys_belong_to_an_operation_and_a_chunk(store: AnyStore, cluster_id: int):
    records = [answer("k"), answer("k", operation="bindPod"), answer("k", chunk=1)]
    for number, record in enumerate(records):
        await committed(store, cluster_id, create(f"pod-{number}"), idempotency=[record])
    found = await store.log.find_answers(cluster_id, [record.id for record in records])
    assert sorted(found, key=lambda record: record.id) == sorted(
        records, key=lambda record: record.id
    )


async def test_p11_an_answer_that_changed_nothing_is_kept_if_the_head_is_still_there(
    store: AnyStore, cluster_id: int
):
    head = await committed(store, cluster_id, create("a"))
    record = answer("k1")
    assert await store.log.record_answers(cluster_id, head, [record]) == Committed(head)
    assert await store.log.record_answers(cluster_id, head, [record]) == DuplicateKey((record,))
    later = await committed(store, cluster_id, create("b"))
    assert await store.log.record_answers(cluster_id, head, [answer("k2")]) == Lost(later)
    assert await store.log.find_answers(cluster_id, [answer("k2").id]) == ()


async def test_p11_a_record_counts_until_the_sweeper_takes_it(store: AnyStore, cluster_id: int):
    record = answer("k1")
    await committed(store, cluster_id, create("a"), idempotency=[record])
    assert await store.housekeeping.sweep_answers(cluster_id, keep_seconds=3600) == 0
    assert await store.log.find_answers(cluster_id, [record.id]) == (record,)
    assert await store.housekeeping.sweep_answers(cluster_id, keep_seconds=0) == 1
    assert await store.log.find_answers(cluster_id, [record.id]) == ()
    await committed(store, cluster_id, create("b"), idempotency=[record])


async def test_p11_looking_up_no_keys_finds_none(store: AnyStore, cluster_id: int):
    assert await store.log.find_answers(cluster_id, []) == ()
    assert await store.log.find_answers(cluster_id, [IdempotencyKey("placePods", "k")]) == ()


async def test_p16_a_commit_waits_for_its_due_time(store: AnyStore, cluster_id: int):
    head = await store.log.head(cluster_id)
    now = await store.now()
    early = commit_on(head, create("a"), not_before=now + timedelta(hours=1))
    assert await store.log.commit(cluster_id, early) == NotYet(head)
    due = replace(early, commit_id=new_id(), not_before=now)
    assert isinstance(await store.log.commit(cluster_id, due), Committed)


async def test_a_cluster_that_is_gone_is_not_found(store: AnyStore, cluster_id: int):
    head = await store.log.head(cluster_id)
    request = commit_on(head, create("a"))
    assert await store.clusters.delete(cluster_id)
    for call in (
        store.log.commit(cluster_id, request),
        store.log.settle_unknown(cluster_id, request),
        store.log.commit_locked(cluster_id, head.revision, head.tip, lambda _: None),
        store.log.record_answers(cluster_id, head, [answer("k")]),
    ):
        with pytest.raises(NotFound):
            await call


@pytest.mark.parametrize("locked", [False, True])
async def test_a_commit_that_rests_on_leases_is_made_only_while_all_are_held(
    store: AnyStore, cluster_id: int, *, locked: bool
):
    """They may be those of another cluster; of several holders the answer names the ones that are late."""
    other = (await store.clusters.create("other", b"{}")).cluster_id
    held = [
        HeldLeases(holder=holder, names=((cluster_id, holder), (other, holder)))
        for holder in ("a", "b")
    ]
    for each in held:
        for number, name in each.names:
            await store.leases.acquire(number, name, each.holder, 60)

    async def commit(head: Head, name: str):
        request = replace(commit_on(head, create(name)), leases=held)
        if locked:
            return await store.log.commit_locked(
                cluster_id, head.revision, head.tip, lambda _: request
            )
        return await store.log.commit(cluster_id, request)

    done = await commit(await store.log.head(cluster_id), "first")
    assert isinstance(done, Committed)
    await store.leases.release(other, "b", "b")
    assert await commit(done.head, "second") == LeasesEnded(frozenset({"b"}))
    await store.leases.acquire(other, "b", "somebody", 60)
    await store.leases.acquire(cluster_id, "a", "a", 0)
    assert await commit(done.head, "second") == LeasesEnded(frozenset({"a", "b"}))
    assert await store.log.head(cluster_id) == done.head
    assert await names(store, cluster_id) == ["first"]


async def test_leases_are_prolonged_together_and_none_that_has_ended(
    store: AnyStore, cluster_id: int
):
    held = HeldLeases(holder="a", names=((cluster_id, "x"), (cluster_id, "y")))
    assert await store.leases.prolong(replace(held, names=()), 60)
    assert not await store.leases.prolong(held, 60)
    before = await store.leases.acquire(cluster_id, "x", "a", 30)
    await store.leases.acquire(cluster_id, "y", "a", 0)
    assert not await store.leases.prolong(held, 60)
    assert await store.leases.acquire(cluster_id, "y", "b", 60)
    assert before is not None
    assert (await store.leases.claim(cluster_id, "x", "b", 1)).until == before.until
    await store.leases.release(cluster_id, "y", "b")
    await store.leases.acquire(cluster_id, "y", "a", 30)
    assert await store.leases.prolong(held, 60)
    assert (await store.leases.claim(cluster_id, "x", "b", 1)).until > before.until
