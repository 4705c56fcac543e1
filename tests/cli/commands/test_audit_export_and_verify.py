"""`moorage audit`: rows as lines, and the first one that is not what was written."""

from datetime import UTC, datetime

import httpx
import msgspec
import pytest

from service.model.log.audit_chain import AuditedCaller, AuditEntry, AuditRow
from tests.support.memory_store.chains import AuditChains

AT = datetime(2026, 5, 4, tzinfo=UTC)
ALICE = AuditedCaller("alice ü", "192.0.2.1", "putNode", "r")


@pytest.fixture
def rows() -> list[AuditRow]:
    log = AuditChains()
    log.add(0, 7, "", AT, [AuditEntry(caller=ALICE, cluster="other", revision=1)])
    log.add(1, 1, "default", AT, [AuditEntry(caller=ALICE, revision=n) for n in (2, 3, 4)])
    return list(log.rows((0, 0)))


def pages(rows: list[AuditRow]) -> list[httpx.Response]:
    """The answers of a server that gives two rows a page."""
    answers = []
    for start in range(0, len(rows), 2):
        rest = {"continue": str(start + 2)} if start + 2 < len(rows) else {}
        page = {"kind": "AuditList", "metadata": rest, "items": rows[start : start + 2]}
        answers.append(httpx.Response(200, content=msgspec.json.encode(page)))
    return answers


def test_rows_are_exported_one_a_line(moorage, stub, rows):
    stub.on("GET", "/v1/audit", *pages(rows))
    ended = moorage("audit", "export", "--since", "2026-05-04T00:00:00Z", "--of", "default")
    lines = [msgspec.json.decode(line, type=AuditRow) for line in ended.out.splitlines()]
    assert (ended.code, lines) == (0, rows)
    asked = stub.requests[0].url.params
    assert (asked["since"], asked["cluster"]) == ("2026-05-04T00:00:00Z", "default")


def test_rows_that_are_what_was_written_are_counted(moorage, stub, rows):
    stub.on("GET", "/v1/audit", *pages(rows))
    ended = moorage("audit", "verify")
    assert (ended.code, ended.out) == (0, "4 rows are what was written.\n")


def test_the_first_row_that_was_altered_is_told(moorage, stub, rows):
    rows[2] = msgspec.structs.replace(rows[2], principal="mallory")
    stub.on("GET", "/v1/audit", *pages(rows))
    ended = moorage("audit", "verify")
    assert ended.code == 1
    assert "Row 2 of chain 1 is not what was written" in ended.err


def test_a_row_that_is_missing_between_pages_is_told(moorage, stub, rows):
    del rows[2]
    stub.on("GET", "/v1/audit", *pages(rows))
    ended = moorage("audit", "verify")
    assert ended.code == 1
    assert "Row 3 of chain 1" in ended.err
    assert "it follows number 1" in ended.err
