"""Each statement of the service can be sent to the one server that has a cluster's rows, or is known to ask all."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from pglast import parse_sql
from pglast.parser import ParseError

import migrations
from service import store
from service.store import embedded, statements as compiled_statements
from service.store.schema import alembic_runner
from service.store.schema.citus_sharding import (
    CREATED_EVERYWHERE,
    DELEGATED,
    DISTRIBUTED,
    REFERENCE,
)
from service.store.schema.tables import metadata
from tests.store.routing import Tables, calls_of, functions_of, mistakes, writes_or_locks

TABLES = Tables(DISTRIBUTED, frozenset(REFERENCE))
LOCAL = {"access_state", "principal", "replica_report", "token", "worker"}
"""They are about processes and callers, not about one cluster, and small."""
OF_ALL = {
    "audit._LIST": "a page of the audit, of all chains in their order",
    "audit._CHAINS": "which chains the audit has",
    "clusters._PODS": "pods of several clusters, for a list of clusters",
    "commits._PROVE": "writes no row; it asks for the right to write",
    "statements.clusters('')": "the list of clusters",
    "commits._HEADS": "the heads of several clusters, for all that a process watches",
    "heartbeats._UNATTENDED": "which clusters nobody looks after",
    "verification._AUDIT": "the audit, of all chains in their order",
    "verification._AUDIT_ENDS": "the ends of all chains of the audit",
    "leases._EXPIRED": "which clusters nobody looks after any more",
    "workers._HOLDERS": "how many clusters each worker has",
    "leases._UNATTENDED": "which clusters nobody looks after",
    "webhooks._DUE": "which clusters have something to deliver",
}
"""Statements about all clusters, or several: they ask all servers, and neither write nor lock."""

_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|BEGIN)\b")
_WITHOUT_TABLES = {"commits._BEGIN"}
"""They are completed with figures before they are sent, and name no table."""


def modules() -> Iterator[tuple[str, object]]:
    for each in pkgutil.walk_packages(store.__path__, f"{store.__name__}."):
        if not each.ispkg and not each.name.startswith(f"{embedded.__name__}."):
            yield each.name.rpartition(".")[2], importlib.import_module(each.name)


def constants() -> dict[str, str]:
    """All constants of the store's modules that begin as statements do, but for parts of others."""
    found = {
        f"{name}.{constant}": value
        for name, module in modules()
        for constant, value in vars(module).items()
        if isinstance(value, str) and _SQL.match(value)
    }
    whole = {name: text for name, text in found.items() if is_statement(text)}
    parts = found.keys() - whole.keys() - _WITHOUT_TABLES
    assert all(any(found[each].strip() in text for text in whole.values()) for each in parts), parts
    return whole


def is_statement(text: str) -> bool:
    try:
        parse_sql(text)
    except ParseError:
        return False
    return True


def inline() -> dict[str, str]:
    """Statements that stand within functions; none of them is put together there."""
    found: dict[str, str] = {}
    root = Path(store.__path__[0])
    apart = {Path(alembic_runner.__file__), *root.glob("embedded/*.py")}
    for path in set(root.rglob("*.py")) - apart:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = (
            each
            for each in ast.walk(tree)
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        )
        for node in (part for each in functions for part in ast.walk(each)):
            assert not (isinstance(node, ast.JoinedStr) and _SQL.match(ast.unparse(node)[2:])), (
                ast.unparse(node)
            )
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and _SQL.match(node.value)
            ):
                found[f"{path.stem}, line {node.lineno}"] = node.value
    return found


def compiled() -> dict[str, str]:
    lists = product((False, True), (False, True), ("Start", "Name", "Key"))
    return {
        f"statements.object_list{each}": compiled_statements.object_list(*each).sql
        for each in lists
    } | {
        f"statements.clusters({by!r})": compiled_statements.clusters(by).sql
        for by in ("", "number")
    }


def functions() -> dict[str, list[str]]:
    folder = Path(migrations.__file__).parent / "sql"
    return functions_of(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.sql")))


def statements() -> dict[str, str]:
    """All statements of the store, and those in the functions that they call."""
    found = constants() | inline() | compiled()
    made = functions()
    called, seen = list(found.values()), set[str]()
    while called:
        for name in (calls_of(*parse_sql(called.pop())) & made.keys()) - seen:
            seen.add(name)
            called += made[name]
            found |= {f"{name}, {place}": each for place, each in enumerate(made[name], 1)}
    return found


STATEMENTS = statements()


def test_each_statement_can_be_sent_to_one_server():
    wrong = {
        name: found
        for name in STATEMENTS.keys() - OF_ALL.keys()
        if (found := mistakes(STATEMENTS[name], TABLES))
    }
    assert wrong == {}


def test_statements_about_all_clusters_are_known_and_neither_write_nor_lock():
    assert [name for name in OF_ALL if not mistakes(STATEMENTS[name], TABLES)] == []
    assert [name for name in OF_ALL if writes_or_locks(STATEMENTS[name])] == ["commits._PROVE"]


def test_of_every_table_is_said_where_it_is():
    placed = [*DISTRIBUTED, *REFERENCE, *LOCAL]
    assert sorted(placed) == sorted(metadata.tables)


def test_functions_that_run_on_another_server_have_those_there_that_they_call():
    made = functions()
    for name in DELEGATED:
        called = calls_of(*(stmt for each in made[name] for stmt in parse_sql(each)))
        assert called & made.keys() <= set(CREATED_EVERYWHERE) | DELEGATED.keys()


ONE = "SELECT * FROM head AS h LEFT JOIN commit AS k ON k.cluster_id = {} WHERE h.cluster_id = $1"
PLANTED = {
    "no cluster": "SELECT * FROM object WHERE kind = 'Pod'",
    "another column": "SELECT * FROM object WHERE revision = $1",
    "or": "SELECT * FROM head WHERE cluster_id = $1 OR revision = $2",
    "by a join": ONE.format("h.cluster_id"),
    "another cluster": ONE.format("$2"),
    "ON the outer side": "SELECT * FROM head AS h LEFT JOIN floor AS f ON f.cluster_id = $1 AND h.cluster_id = $1",
    "in a subquery": "SELECT * FROM head WHERE cluster_id = $1 AND revision IN (SELECT revision FROM floor)",
    "in a lateral": "SELECT * FROM head AS h, LATERAL (SELECT FROM event AS e WHERE e.cluster_id = h.cluster_id) AS e "
    "WHERE h.cluster_id = $1",
    "several": "SELECT * FROM head WHERE cluster_id = ANY($1)",
    "by ctid": "DELETE FROM object WHERE ctid = ANY(ARRAY(SELECT ctid FROM object WHERE cluster_id = $1))",
    "of others": "INSERT INTO change (cluster_id, revision) SELECT c.cluster_id, 1 FROM cluster AS c",
    "unnamed": "INSERT INTO change SELECT $1, 2",
    "clock": "UPDATE head SET at = clock_timestamp() WHERE cluster_id = $1",
    "clock of a conflict": "INSERT INTO lease (cluster_id, name) VALUES ($1, $2) ON CONFLICT (cluster_id, name) "
    "DO UPDATE SET until = now()",
    "with": "WITH kept AS (INSERT INTO idempotency (cluster_id) VALUES ($1)) SELECT FROM head WHERE cluster_id = $1",
    "beside a table of one server": "SELECT FROM head, principal WHERE head.cluster_id = $1",
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found(name: str):
    assert mistakes(PLANTED[name], TABLES)


@pytest.mark.parametrize(
    "statement",
    [
        ONE.format("$1"),
        "SELECT FROM principal",
        "SELECT FROM cluster WHERE name = $1",
        "UPDATE head SET at = $2 WHERE $1 = cluster_id",
        "INSERT INTO audit (chain, number) SELECT 0, n FROM unnest($1::bigint[]) AS n",
    ],
)
def test_what_is_right_is_not_complained_about(statement: str):
    assert not mistakes(statement, TABLES)


def test_a_mistake_in_the_body_of_a_function_is_found():
    replaced = """
        CREATE FUNCTION f(p_cluster_id bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
            RETURN (SELECT revision FROM head WHERE cluster_id = p_cluster_id);
        END $$;
        CREATE OR REPLACE FUNCTION f(p_cluster_id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE v_revision bigint;
        BEGIN
            v_revision := (SELECT max(revision) FROM head);
            IF v_revision > 1 THEN
                UPDATE head SET revision = 1 WHERE cluster_id = p_cluster_id;
            END IF;
            RETURN v_revision;
        END $$
    """
    body = functions_of([replaced])["f"]
    assert [bool(mistakes(each, TABLES)) for each in body if "head" in each] == [True, False]
