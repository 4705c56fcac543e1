"""A run in which something is skipped for an unknown reason fails, and says which test it was."""

import pytest

from tests.skipping import ALLOWED

pytest_plugins = ["pytester"]
CONFTEST = """
from tests.skipping import Skips

def pytest_configure(config):
    config.pluginmanager.register(Skips())
"""


@pytest.fixture
def run(pytester: pytest.Pytester):
    def run(body: str) -> pytest.RunResult:
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile(f"import pytest\n\n{body}")
        return pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:asyncio")

    return run


def skipping(reason: str) -> str:
    return f"def test_it():\n    pytest.skip({reason!r})\n"


def test_a_skip_for_no_known_reason_fails_the_run(run):
    done = run(skipping("I did not feel like it"))
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["ERROR *::test_it: skipped for no reason that is known: I did*"])


def test_a_file_that_is_skipped_whole_fails_the_run(run):
    done = run("pytest.skip('not today', allow_module_level=True)\n")
    assert done.ret != pytest.ExitCode.OK
    done.stdout.fnmatch_lines(["ERROR *skipped for no reason that is known: not today"])


@pytest.mark.parametrize("reason", ALLOWED)
def test_a_known_reason_is_none_to_fail(run, reason):
    assert run(skipping(reason)).ret == pytest.ExitCode.OK


def test_what_is_expected_to_fail_is_not_skipped(run):
    done = run("@pytest.mark.xfail\ndef test_it():\n    assert False\n")
    assert done.ret == pytest.ExitCode.OK
