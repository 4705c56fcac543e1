"""Judges statements: can each be sent to the one server that has a cluster's rows?

With Citus, the rows of a cluster are on one of several servers. A statement goes to that server alone
if it says of each table that is distributed which cluster is meant, by the same value: `cluster_id =
$1` in the table's own WHERE, or in the ON of the outer join that may leave the table out. What a join
would imply is not enough, since Citus draws no conclusions over outer joins and laterals.

Statements are parsed by PostgreSQL's own parser, and so are the bodies of functions.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from pglast import ast, parse_plpgsql, parse_sql
from pglast.enums import A_Expr_Kind, BoolExprType, JoinType
from pglast.visitors import Visitor

VOLATILE = frozenset({"clock_timestamp", "gen_random_uuid", "nextval", "random", "timeofday"})
"""Functions that may not stand in an UPDATE or DELETE that is sent to another server."""
_VARIABLE = re.compile(r"[pv]_\w+|head_at|known")
"""Names of variables and parameters in bodies of functions."""


@dataclass(frozen=True)
class Tables:
    """Where tables are."""

    distributed: Mapping[str, str]
    """The tables whose rows are on several servers, with the column that says on which."""
    everywhere: frozenset[str]
    """The tables that each server has whole."""

    def is_local(self, name: str) -> bool:
        """Whether only the server has it to which all statements are sent first."""
        return name not in self.distributed and name not in self.everywhere


@dataclass
class _Level:
    """The tables of one SELECT, INSERT, UPDATE or DELETE, without those of its subqueries."""

    tables: dict[str, str] = field(default_factory=dict)
    """Names of tables by what they are called here."""
    others: int = 0
    """How many functions and subqueries stand beside them."""
    conditions: dict[str, list[ast.Node]] = field(default_factory=dict)
    """What must be true of the rows of each table, for them to be in the result."""


class _Judge(Visitor):
    """Looks at every level of a statement."""

    def __init__(self, tables: Tables, named: Collection[str]) -> None:
        """`named` are the names of WITH, which are no tables."""
        super().__init__()
        self.found: list[str] = []
        self.values: set[str] = set()
        self.used: set[str] = set()
        self._tables = tables
        self._named = named

    def visit_CommonTableExpr(self, _: object, node: ast.CommonTableExpr) -> None:  # noqa: N802 - pglast's name
        if isinstance(node.ctequery, ast.InsertStmt):
            self.found.append(f"WITH {node.ctename} holds an INSERT")

    def visit_SelectStmt(self, _: object, node: ast.SelectStmt) -> None:  # noqa: N802 - pglast's name
        self._judge(node.fromClause or (), node.whereClause)

    def visit_UpdateStmt(self, _: object, node: ast.UpdateStmt) -> None:  # noqa: N802 - pglast's name
        self._judge((node.relation, *(node.fromClause or ())), node.whereClause)
        self._refuse_clock(node, node.relation)

    def visit_DeleteStmt(self, _: object, node: ast.DeleteStmt) -> None:  # noqa: N802 - pglast's name
        self._judge((node.relation, *(node.usingClause or ())), node.whereClause)
        self._refuse_clock(node, node.relation)

    def visit_InsertStmt(self, _: object, node: ast.InsertStmt) -> None:  # noqa: N802 - pglast's name
        name = node.relation.relname
        self.used.add(name)
        column = self._tables.distributed.get(name)
        if column is None:
            return
        columns = [each.name for each in node.cols or ()]
        if column not in columns:
            self.found.append(f"{name}: the INSERT does not name {column}")
            return
        place = columns.index(column)
        rows = node.selectStmt.valuesLists or [
            [each.val for each in node.selectStmt.targetList or ()]
        ]
        for row in rows:
            self._note(name, _value(row[place]))
        if node.onConflictClause is not None:
            self.found += [
                f"{name}: ON CONFLICT calls {called}" for called in calls_of(node.onConflictClause)
            ]

    def _judge(self, sources: Iterable[ast.Node], where: ast.Node | None) -> None:
        level = _Level()
        for source in sources:
            self._enter(level, source, ())
        for name, table in level.tables.items():
            self.used.add(table)
            column = self._tables.distributed.get(table)
            if column is None:
                continue
            alone = len(level.tables) == 1 and not level.others
            conditions = [*_conjuncts(where), *level.conditions[name]]
            given = [_given(each, name, column, alone=alone) for each in conditions]
            self._note(name, next(filter(None, given), None))

    def _enter(self, level: _Level, source: ast.Node, on: tuple[ast.Node, ...]) -> None:
        if isinstance(source, ast.JoinExpr):
            own = tuple(_conjuncts(source.quals))
            inner = source.jointype == JoinType.JOIN_INNER
            self._enter(level, source.larg, (*on, *own) if inner else on)
            self._enter(level, source.rarg, (*on, *own) if inner else own)
        elif isinstance(source, ast.RangeVar) and source.relname not in self._named:
            name = source.alias.aliasname if source.alias else source.relname
            level.tables[name] = source.relname
            level.conditions[name] = list(on)
        else:
            level.others += 1

    def _note(self, name: str, value: str | None) -> None:
        if value is None:
            self.found.append(f"{name}: which cluster is not said")
        else:
            self.values.add(value)

    def _refuse_clock(self, node: ast.Node, relation: ast.RangeVar) -> None:
        if relation.relname in self._tables.distributed:
            called = VOLATILE.intersection(calls_of(node))
            self.found += [f"{relation.relname}: the change calls {each}" for each in called]


class _Names(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_CommonTableExpr(self, _: object, node: ast.CommonTableExpr) -> None:  # noqa: N802 - pglast's name
        self.found.add(node.ctename)


class _Calls(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_FuncCall(self, _: object, node: ast.FuncCall) -> None:  # noqa: N802 - pglast's name
        self.names.add(node.funcname[-1].sval)

    def visit_SQLValueFunction(self, _: object, node: ast.SQLValueFunction) -> None:  # noqa: N802 - pglast's name
        self.names.add(node.op.name)


def calls_of(*nodes: ast.Node) -> set[str]:
    """The names of all functions that are called in parsed statements."""
    visitor = _Calls()
    for node in nodes:
        visitor(node)
    return visitor.names


class _Writes(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.writes = False

    def visit(self, _: object, node: ast.Node) -> None:
        changes = isinstance(node, ast.InsertStmt | ast.UpdateStmt | ast.DeleteStmt)
        self.writes = self.writes or changes or isinstance(node, ast.LockingClause)


def writes_or_locks(statement: str) -> bool:
    """Whether a statement changes or locks rows, itself or in a part of it."""
    visitor = _Writes()
    for each in parse_sql(statement):
        visitor(each.stmt)
    return visitor.writes


def mistakes(statement: str, tables: Tables) -> list[str]:
    """Why a statement cannot be sent to one server; empty if it can, or needs no other server."""
    found: list[str] = []
    for each in parse_sql(statement):
        names = _Names()
        names(each.stmt)
        judge = _Judge(tables, names.found)
        judge(each.stmt)
        if not judge.used & tables.distributed.keys():
            continue
        found += judge.found
        if len(judge.values) > 1:
            found.append(f"it says of several clusters: {', '.join(sorted(judge.values))}")
        if local := sorted(filter(tables.is_local, judge.used)):
            found.append(f"it also needs {', '.join(local)}, which one server alone has")
    return found


def _conjuncts(condition: ast.Node | None) -> Iterator[ast.Node]:
    if condition is None:
        return
    if isinstance(condition, ast.BoolExpr) and condition.boolop == BoolExprType.AND_EXPR:
        yield from chain.from_iterable(map(_conjuncts, condition.args))
    else:
        yield condition


def _given(condition: ast.Node, table: str, column: str, *, alone: bool) -> str | None:
    """The value that a condition demands of a table's column; None if it demands no known one."""
    if not (
        isinstance(condition, ast.A_Expr)
        and condition.kind == A_Expr_Kind.AEXPR_OP
        and condition.name[-1].sval == "="
    ):
        return None
    for left, right in (
        (condition.lexpr, condition.rexpr),
        (condition.rexpr, condition.lexpr),
    ):
        named = _path(left)
        if named == (table, column) or (alone and named == (column,)):
            return _value(right)
    return None


def _path(node: ast.Node) -> tuple[str, ...]:
    if not isinstance(node, ast.ColumnRef):
        return ()
    return tuple(each.sval for each in node.fields if isinstance(each, ast.String))


def _value(node: ast.Node) -> str | None:
    """What stands for one value in the whole statement: a parameter, a variable, or a constant."""
    if isinstance(node, ast.TypeCast):
        return _value(node.arg)
    if isinstance(node, ast.ParamRef):
        return f"${node.number}"
    if isinstance(node, ast.A_Const) and not node.isnull:
        return str(node.val)
    path = _path(node)
    return path[0] if len(path) == 1 and _VARIABLE.fullmatch(path[0]) else None


def functions_of(scripts: Iterable[str]) -> dict[str, list[str]]:
    """The statements and expressions in the body of each function that scripts make, the last ones if it is replaced."""
    found: dict[str, list[str]] = {}
    for script in scripts:
        for raw in parse_sql(script):
            if isinstance(raw.stmt, ast.CreateFunctionStmt):
                rest = script.encode()[raw.stmt_location :]
                text = rest[: raw.stmt_len or None].decode()
                found[raw.stmt.funcname[-1].sval] = _body(raw.stmt, text)
    return found


def _body(function: ast.CreateFunctionStmt, text: str) -> list[str]:
    options = {each.defname: each.arg for each in function.options}
    if options["language"].sval == "sql":
        return [options["as"][0].sval]
    return [_statement(each) for each in _expressions(parse_plpgsql(text))]


def _expressions(part: object) -> Iterator[dict[str, object]]:
    if isinstance(part, dict):
        if isinstance(part.get("query"), str):
            yield part
        part = list(part.values())
    if isinstance(part, list):
        yield from chain.from_iterable(map(_expressions, part))


def _statement(expression: dict[str, object]) -> str:
    """A statement, or an expression as one, whose value may be assigned to a variable."""
    text = str(expression["query"])
    if expression["parseMode"] == 0:
        return text
    return f"SELECT {re.sub(r'^[^:(]*:=', '', text)}"
