"""How long nothing was acknowledged is counted from the cause on, and told by cause."""

import pytest

from tests.concurrency.failovers.figures import Episode, silence, table


@pytest.mark.parametrize(
    ("acknowledged", "expected"),
    [
        ([], (10.0, 10.0)),
        ([1.0, 100.5, 104.5, 105.0, 109.5], (4.5, 9.5)),
        ([104.0, 100.5, 109.0], (5.0, 9.0)),
        ([99.0, 103.0, 103.5, 106.0, 108.5, 111.0], (3.0, 3.0)),
    ],
)
def test_the_longest_silence_lies_between_the_cause_and_the_end(acknowledged, expected):
    assert silence(acknowledged, 100.0, 110.0) == expected


def test_episodes_are_told_by_cause():
    episodes = [
        Episode("killed", silence=2.0, again=3.0, failovers=1),
        Episode("stopped", silence=20.0, again=21.0, failovers=1),
        Episode("killed", silence=4.0, again=9.0, failovers=2),
    ]
    assert list(table(episodes))[2:] == [
        "| killed | 2 | 3 | 3.0 s, 4.0 s | 6.0 s, 9.0 s |",
        "| stopped | 1 | 1 | 20.0 s, 20.0 s | 21.0 s, 21.0 s |",
    ]
