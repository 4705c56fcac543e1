"""Uids are those of RFC 4122's version 4, however many of them are drawn at a time."""

from uuid import RFC_4122, UUID

from service.runtime.ids import RandomIds


def test_uids_are_random_ones_in_their_usual_spelling_and_no_two_are_the_same():
    ids = RandomIds()
    uids = [ids.uid() for _ in range(1_000)]
    read = [UUID(uid) for uid in uids]
    assert uids == [str(uid) for uid in read]
    assert {(uid.version, uid.variant) for uid in read} == {(4, RFC_4122)}
    assert len(set(uids)) == len(uids)
    for place in set(range(36)) - {8, 13, 14, 18, 23}:
        assert len({uid[place] for uid in uids}) == (4 if place == 19 else 16)
