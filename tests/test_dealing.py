"""Tests are dealt to processes as evenly as what is known of them allows, always alike."""

from tests.dealing import APART, SHARING, UNKNOWN_SECONDS, by_unit, deal

SECONDS = {"a": 50.0, "b": 30.0, "c": 20.0, "d": 10.0}


def test_the_longest_go_first_each_to_whoever_has_least_to_do():
    assert deal(SECONDS, 2) == {"a": 0, "b": 1, "c": 1, "d": 0}


def test_the_order_in_which_tests_are_collected_makes_no_difference():
    assert deal(dict(reversed(SECONDS.items())), 3) == deal(SECONDS, 3)


def test_one_process_has_all():
    assert set(deal(SECONDS, 1).values()) == {0}


def test_files_stay_together_and_so_do_those_that_share_something():
    first, second = (f"{SHARING[0]}test_{name}.py" for name in "ab")
    tests = ["a::one", "a::two", "x::one", f"{first}::one", f"{second}::one"]

    found = by_unit(tests, {**SECONDS, first: 3.0, second: 4.0})

    assert found == {"a": 50.0, "x": UNKNOWN_SECONDS, SHARING[0]: 7.0}
    assert UNKNOWN_SECONDS > 0


def test_the_tests_of_a_file_that_share_nothing_are_dealt_each_for_itself():
    file = APART[0]

    assert by_unit([f"{file}::one", f"{file}::two"], {file: 5.0}) == {
        f"{file}::one": 2.5,
        f"{file}::two": 2.5,
    }
