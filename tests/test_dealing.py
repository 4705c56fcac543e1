"""Files of tests are dealt to processes as evenly as what is known of them allows, always alike."""

from tests.dealing import UNKNOWN_SECONDS, deal

SECONDS = {"a": 50.0, "b": 30.0, "c": 20.0, "d": 10.0}


def test_the_longest_go_first_each_to_whoever_has_least_to_do():
    assert deal("abcd", SECONDS, 2) == {"a": 0, "b": 1, "c": 1, "d": 0}


def test_the_order_in_which_files_are_collected_makes_no_difference():
    assert deal("dcba", SECONDS, 3) == deal("abcd", SECONDS, 3)


def test_a_file_that_was_never_measured_counts_a_little():
    assert UNKNOWN_SECONDS > 0
    assert deal("abx", SECONDS, 2)["x"] == 1


def test_one_process_has_all():
    assert set(deal("abcd", SECONDS, 1).values()) == {0}
