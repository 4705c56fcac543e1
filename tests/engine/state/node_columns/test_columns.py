"""The log of changes gives each reader what it missed, or tells that it no longer knows."""

from service.engine.state.node_columns.columns import DirtyLog

LIMIT = 6


def test_every_reader_gets_all_that_it_missed_or_none():
    log = DirtyLog(limit=LIMIT)
    for slot in range(4 * LIMIT):
        log.append(slot)
        for position in range(log.position + 1):
            missed = log.since(position)
            assert missed is None or missed == list(range(position, log.position))
        assert log.since(log.position) == []
        assert log.since(max(0, log.position - LIMIT // 2)) is not None
