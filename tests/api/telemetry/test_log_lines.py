"""Lines of the log: what they tell, for people and as JSON, and at which levels."""

import asyncio
import json
import logging
import re
from collections.abc import Iterator

import pytest

from service.api.telemetry.logs import configure_logs, formatter
from service.runtime.log_context import context_of
from service.settings import InvalidSettings, Settings, read_settings
from tests.api.harness import CLUSTER, Harness, pod

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"
_log = logging.getLogger("service.tests")


class Lines(logging.Handler):
    """Keeps what is logged, as lines."""

    def __init__(self, log_format: str) -> None:
        super().__init__()
        self.setFormatter(formatter(log_format))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def only(self) -> dict:
        [line] = self.lines
        return json.loads(line)


@pytest.fixture
def keep() -> Iterator:
    """A function that has the lines of our loggers kept, in a format."""
    own, kept = logging.getLogger("service"), []
    level = own.level

    def keep(log_format: str = "json") -> Lines:
        kept.append(Lines(log_format))
        own.addHandler(kept[-1])
        own.setLevel(logging.INFO)
        return kept[-1]

    yield keep
    own.setLevel(level)
    for each in kept:
        own.removeHandler(each)


def test_a_line_of_json_has_time_level_process_logger_and_message(keep) -> None:
    lines = keep()
    _log.warning("The %s is %s.", "database", "lost", extra={"reason": "a\nb"})
    line = lines.only()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line.pop("time"))
    assert re.fullmatch(r"server\[\d+\]", line.pop("process"))
    assert line == {
        "level": "warning",
        "logger": "service.tests",
        "message": "The database is lost.",
        "reason": "a\nb",
    }


def test_a_line_for_people_is_one_line_whatever_is_in_its_fields(keep) -> None:
    lines = keep("text")
    _log.warning("Lost.", extra={"reason": 'no\n2026 INFO "fake"', "plain": "a-b", "empty": ""})
    [line] = lines.lines
    assert re.match(r"\S+Z WARNING server\[\d+\] service\.tests: Lost\. ", line)
    assert line.endswith(r'reason="no\n2026 INFO \"fake\"" plain=a-b empty=""')
    assert "\n" not in line


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_traceback_has_no_local_variables(keep, log_format: str) -> None:
    lines = keep(log_format)
    secret = "password".upper()
    try:
        int(f"{len(secret)} characters")
    except ValueError:
        _log.exception("A fault.")
    [line] = lines.lines
    assert "ValueError: invalid literal" in line
    assert "Traceback" in line
    assert secret not in line


async def test_a_request_is_told_by_its_ids_and_its_cluster(keep, harness: Harness, monkeypatch):
    lines = keep()

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(harness.store.objects, "get", broken)
    headers = {"x-request-id": "mine", "traceparent": TRACEPARENT}
    answer = await harness.client.get(f"{CLUSTER}/nodes/n1", headers=headers)
    assert answer.status_code == 500
    assert answer.json()["requestId"] == answer.headers["x-request-id"] == "mine"
    line = lines.only()
    told = {name: line[name] for name in ("level", "cluster", "request_id", "trace_id")}
    assert told == {
        "level": "error",
        "cluster": "default",
        "request_id": "mine",
        "trace_id": TRACE,
    }
    assert "RuntimeError" in line["exception"]


@pytest.mark.parametrize(
    "traceparent",
    ["nothing", f"ff-{TRACE}-b7ad6b7169203331-01", f"00-{'0' * 32}-b7ad6b7169203331-01"],
)
async def test_a_trace_that_is_none_is_passed_over(make_harness, keep, traceparent: str) -> None:
    harness = await make_harness(access_log=True)
    lines = keep()
    await harness.client.get(f"{CLUSTER}/nodes", headers={"traceparent": traceparent})
    line = lines.only()
    assert "trace_id" not in line
    assert len(line["request_id"]) == 36


async def test_requests_at_the_same_time_are_told_apart(make_harness, keep) -> None:
    harness = await make_harness(access_log=True)
    await harness.put_node("n1")
    lines = keep()

    async def place(number: int) -> None:
        body = {"pods": [pod(f"p{number}")]}
        headers = {"x-request-id": f"id-{number}"}
        await harness.client.post(f"{CLUSTER}/placements", json=body, headers=headers)

    await asyncio.gather(*map(place, range(20)))
    told = sorted(json.loads(line)["request_id"] for line in lines.lines)
    assert told == sorted(f"id-{number}" for number in range(20))


async def test_the_access_log_is_off_unless_it_is_asked_for(harness: Harness, make_harness, keep):
    lines = keep()
    await harness.client.get(f"{CLUSTER}/nodes")
    assert lines.lines == []
    asked = await make_harness(access_log=True)
    await asked.client.get(f"{CLUSTER}/nodes?labelSelector=secret")
    [line] = [each for each in map(json.loads, lines.lines) if each["logger"] == "service.access"]
    assert (line["method"], line["path"]) == ("GET", f"{CLUSTER}/nodes")
    assert (line["status"], line["operation"]) == (200, "listNodes")
    assert 0 < line["seconds"] < 60
    assert "secret" not in "".join(lines.lines)


async def test_what_a_cluster_does_by_itself_is_told_of_no_request(harness: Harness, keep) -> None:
    """The loop of a cluster begins with the first request, and lives on."""
    lines = keep()
    await harness.client.put(
        f"{CLUSTER}/nodes/n1",
        json={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
        headers={"x-request-id": "first"},
    )
    line = lines.only()
    assert line["message"] == "The replica is loaded."
    assert (line["cluster"], line["reason"]) == ("default", "the cluster is used")
    assert "request_id" not in line


async def test_a_task_of_a_cluster_tells_its_name(keep) -> None:
    lines = keep()

    async def work() -> None:
        _log.info("Work.")

    await asyncio.create_task(work(), context=context_of("prod"))
    assert lines.only()["cluster"] == "prod"


@pytest.fixture
def untouched() -> Iterator[None]:
    """Restores what `configure_logs` changes for this whole process."""
    names = ("", "service", "service.store", "_granian")
    loggers = [logging.getLogger(name) for name in names]
    before = [(each, each.level, list(each.handlers), each.propagate) for each in loggers]
    yield
    logging.captureWarnings(capture=False)
    for logger, level, handlers, propagate in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers
        logger.propagate = propagate


@pytest.mark.usefixtures("untouched")
def test_levels_are_settings_and_libraries_tell_only_of_what_is_wrong(capfd) -> None:
    configure_logs(
        Settings(log_level="warning", log_levels="service.store=debug", log_format="json")
    )
    logging.getLogger("service.api").info("not told")
    logging.getLogger("service.api").warning("told 1")
    logging.getLogger("service.store.log.notify").debug("told 2")
    logging.getLogger("httpx").info("not told")
    logging.getLogger("_granian").warning("told 3")
    told = [json.loads(line)["message"] for line in capfd.readouterr().err.splitlines()]
    assert told == ["told 1", "told 2", "told 3"]


@pytest.mark.parametrize("levels", ["service.store", "service=loud", "=debug", "a=info,,"])
def test_bad_levels_are_refused(levels: str) -> None:
    with pytest.raises(InvalidSettings, match="MOORAGE_LOG_LEVELS: "):
        read_settings({"MOORAGE_LOG_LEVELS": levels})
