"""A test that is skipped says why, and a run fails if that reason is not one of these."""

import pytest

ALLOWED = {
    "MOORAGE_ENGINE=interpreted runs this": "`make test` has a session of its own for it.",
    "not compiled here": "There is no C compiler; `.ci/run` refuses to go on without one.",
    "browsers: Chromium is not installed": "A package of the system, and a large one.",
    "documentation: `make docs` has not built it": "The gate builds it before it runs the tests.",
    "clock jumps: libfaketime is not installed": "A package of the system that few machines have.",
    "full disk: a small tmpfs may not be mounted here": "Only root may mount.",
    "other accounts: a folder above this checkout is closed to them": "As that of `mktemp -d` is.",
    "other accounts: only root can become somebody else": "The suite runs as other users, too.",
    "alerts: promtool is not installed": "A package of the system; metrics are compared all the same.",
    "certificates: openssl is not installed": "A package of the system, which most machines have.",
    "trees of processes: only Linux has /proc": "The suite runs elsewhere, too.",
}
"""The reasons for which tests may be skipped, each with why a machine may have it."""


class Skips:
    """Collects the reasons of a run's skipped tests, in the process that gives the verdict."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    @property
    def not_allowed(self) -> dict[str, str]:
        """The skipped tests whose reasons are not allowed, with these reasons."""
        return {test: why for test, why in self._reasons.items() if why not in ALLOWED}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note(report.nodeid, report.longrepr)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._note(report.nodeid, report.longrepr)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.not_allowed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for test, why in self.not_allowed.items():
            terminalreporter.write_line(f"ERROR {test}: skipped for no reason that is known: {why}")

    def _note(self, nodeid: str, longrepr: object) -> None:
        why = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
        self._reasons[nodeid] = why.removeprefix("Skipped: ")
