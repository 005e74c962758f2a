"""A query of `queries/` in Spark's SQL: parsed by sqlglot, passed by the gate of `portable`, put into Spark's words.

sqlglot knows both dialects, but was wrong without a word on a handful of constructs (design, section 5). The gate
refuses those that cannot be mended; those that can are rewritten here, one small function each, before sqlglot writes
the text. What DuckDB and Spark agree on is left to sqlglot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp

from analytics.engines.spark.portable import Types, check, typed
from analytics.engines.spark.steps import steps

Variables: TypeAlias = Mapping[str, Any]  # text, a time, or (DuckDB type, value)
Rewrite: TypeAlias = Callable[[exp.Expr], exp.Expr]


@dataclass(frozen=True, slots=True)
class Statement:
    """Spark SQL. `name`: the temporary view that its rows become; the last has none. `is_kept`: compute it once."""

    name: str | None
    sql: str
    is_kept: bool


def translate(
    name: str, query: str, types: Types, variables: Variables | None = None, *, first_line: int = 1
) -> list[Statement]:
    """The query of one relation as Spark SQL, the parts of its WITH before it.

    `types`: the column types of the relations that it may read. `first_line`: where the query begins in its file, so
    that a refusal names the line there. `read_parquet(getvariable('event_files'))` becomes the view `event_rows`, and
    so on. Raises NotPortable with the line and the construct.
    """
    tree = sqlglot.parse_one(query, dialect="duckdb")
    whole = typed(tree, types)
    check(name, tree, whole, first_line)
    if _needs_columns(tree):
        tree = whole
    given = variables or {}
    for step in (
        _files,
        lambda node: _variable(node, given),
        _filter_in_window,
        _list,
        _lambda,
        _function,
        _keys,
        _cte,
    ):
        tree = tree.transform(step)
    return [
        Statement(one.name, one.tree.sql(dialect="spark", unsupported_level=sqlglot.ErrorLevel.RAISE), one.is_kept)
        for one in steps(re.sub(r"\W", "_", name), tree)
    ]


def _needs_columns(tree: exp.Expr) -> bool:
    """Spark has no QUALIFY and no REPLACE; what sqlglot writes instead of them needs each column of a * by name."""
    return any(
        star.args.get("replace")
        or (isinstance(star.parent_select, exp.Select) and star.parent_select.args.get("qualify"))
        for star in tree.find_all(exp.Star)
        if not isinstance(star.parent, exp.Count)
    )


def _files(node: exp.Expr) -> exp.Expr:
    """The Parquet files of one record kind, which Spark reads by their list and not by a variable."""
    if isinstance(node, exp.Table) and isinstance(node.this, exp.ReadParquet):
        variable = next(node.this.find_all(exp.Literal)).name
        return exp.to_table(f"{variable.removesuffix('_files')}_rows", alias=node.alias or None)
    return node


def _variable(node: exp.Expr, given: Variables) -> exp.Expr:
    """A filter: its value, or NULL where it is not set."""
    if not (isinstance(node, exp.Anonymous) and node.name.lower() == "getvariable"):
        return node
    value = given.get(node.expressions[0].name)
    kind = "text"
    if isinstance(value, tuple):
        kind, value = value
    if value is None:
        return exp.cast(exp.Null(), kind)
    if isinstance(value, datetime):
        return exp.Literal.string(value.isoformat())
    return exp.Literal.string(value) if kind == "text" else exp.cast(exp.convert(value), kind, dialect="duckdb")


def _filter_in_window(node: exp.Expr) -> exp.Expr:
    """Spark knows no FILTER before OVER: the condition goes into the argument, and what it leaves out is NULL."""
    if not (isinstance(node, exp.Window) and isinstance(node.this, exp.Filter)):
        return node
    call, condition = node.this.this, node.this.expression.this
    value = exp.Literal.number(1) if isinstance(call.this, exp.Star) else call.this
    call.set("this", exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())]))
    node.set("this", call)
    return node


def _list(node: exp.Expr) -> exp.Expr:
    """`list(x ORDER BY x)`: sqlglot drops the order. Of no rows DuckDB gives NULL, and Spark an empty array."""
    is_filtered = isinstance(node, exp.Filter) and isinstance(node.this, exp.ArrayAgg)
    if not is_filtered and not (isinstance(node, exp.ArrayAgg) and not isinstance(node.parent, exp.Filter)):
        return node
    call = node.this if is_filtered else node
    ordered = call.this
    value = ordered.this if isinstance(ordered, exp.Order) else ordered
    collected: exp.Expr = exp.Anonymous(this="collect_list", expressions=[value.copy()])
    if is_filtered:
        collected = exp.Filter(this=collected, expression=node.expression.copy())
    sorted_ = exp.Anonymous(this="sort_array", expressions=[collected])
    return exp.Nullif(this=sorted_, expression=exp.Array(expressions=[]))


def _lambda(node: exp.Expr) -> exp.Expr:
    """The index of a lambda counts from 1 in DuckDB and from 0 in Spark."""
    if not (isinstance(node, exp.Lambda) and len(node.expressions) == 2):
        return node
    index = node.expressions[1].name
    for used in list(node.this.find_all(exp.Column, exp.Identifier)):
        is_index = used.name == index and not isinstance(used.parent, exp.Column | exp.Dot | exp.PropertyEQ)
        if is_index:
            used.replace(exp.paren(exp.Add(this=exp.to_identifier(index), expression=exp.Literal.number(1))))
    return node


def _function(node: exp.Expr) -> exp.Expr:
    """Functions that sqlglot passes on by a name that Spark does not know."""
    if isinstance(node, exp.Quantile | exp.PercentileCont):
        return exp.Anonymous(this="percentile", expressions=[node.this, node.args.get("quantile") or node.expression])
    if isinstance(node, exp.Log) and node.this.name == "10":  # sqlglot's log(10, 1000) is 2.9999999999999996 in Spark
        return exp.Anonymous(this="log10", expressions=[node.expression])
    if not isinstance(node, exp.Anonymous):
        return node
    name = node.name.lower()
    if name == "epoch_us":
        return exp.Anonymous(this="unix_micros", expressions=node.expressions)
    if name == "json_valid":
        read = exp.Anonymous(this="get_json_object", expressions=[node.expressions[0], exp.Literal.string("$")])
        return exp.Is(this=read, expression=exp.Not(this=exp.Null()))
    return node


def _keys(node: exp.Expr) -> exp.Expr:
    """`json_keys(text, path)`: Spark's takes the text alone."""
    if not isinstance(node, exp.JSONKeys):
        return node
    text, path = node.this, node.args.get("expression")
    if path is not None:
        at = exp.Literal.string(path.sql("duckdb").strip("'"))
        text = exp.Anonymous(this="get_json_object", expressions=[text, at])
    return exp.Anonymous(this="json_object_keys", expressions=[text])


def _cte(node: exp.Expr) -> exp.Expr:
    """Whether a WITH is kept is DuckDB's to be told."""
    if isinstance(node, exp.CTE) and node.args.get("materialized") is not None:
        node.set("materialized", None)
    return node
