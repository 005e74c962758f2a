"""The gate: what a query of `queries/` may use, so that Spark gives the rows that DuckDB gives.

An allow-list of functions, and rules for constructs that parse on both sides and mean something else (design, section
5). Types come from DuckDB itself, which describes every relation of an empty lake; so a cast that Spark rounds where
DuckDB truncates is seen wherever its argument comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from analytics.errors import RunlakeError

Types: TypeAlias = Mapping[str, Mapping[str, str]]  # relation → column → DuckDB type

# what was seen to give the same rows on both engines, NULLs included
FUNCTIONS = frozenset({
    "Abs", "And", "ArgMax", "ArgMin", "Array", "ArrayAgg", "ArraySize", "ArrayToString", "Avg", "Case", "Cast", "Chr",
    "Coalesce", "ConcatWs", "Count", "DenseRank", "Encode", "Explode", "Filter", "Floor", "Greatest", "If",
    "JSONExtractScalar", "JSONKeys", "Lag", "Lead", "Least", "Length", "Log", "LogicalAnd", "LogicalOr", "Lower",
    "Max", "Median", "Min", "Nullif", "Or", "PercentileCont", "Pow", "Quantile", "ReadParquet", "Round", "RowNumber",
    "Split", "StartsWith", "Struct", "Sum", "TimestampTrunc", "Transform", "TryCast", "Unnest", "Upper", "Xor",
})  # fmt: skip
NAMED = frozenset({"epoch_us", "getvariable", "json_array_length", "json_valid", "octet_length"})
TRY_CAST_TO = (exp.DataType.Type.DOUBLE, exp.DataType.Type.DECIMAL)
INTEGERS = exp.DataType.INTEGER_TYPES
FRACTIONS = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
TIMES = exp.DataType.TEMPORAL_TYPES


@dataclass(frozen=True, slots=True)
class Refused:
    """One construct that the gate refuses: its line in the query, what stands there, and why."""

    line: int
    construct: str
    why: str


class NotPortable(RunlakeError):
    """A query that Spark would answer otherwise than DuckDB."""

    @classmethod
    def of(cls, name: str, refused: list[Refused]) -> NotPortable:
        """All that was refused, one sentence each."""
        said = [f"{name}, line {one.line}: {one.construct} is not portable: {one.why}" for one in refused]
        return cls("\n".join(said) + "\nqueries/README.md says what is.")


def check(name: str, tree: exp.Expr, whole: exp.Expr, first_line: int = 1) -> None:
    """Raises NotPortable if a query uses what is outside the portable subset. `whole`: the same with types."""
    refused = [*_constructs(tree), *_casts(whole), *_lengths(whole)]
    refused = [replace(one, line=one.line + first_line - 1) for one in refused]
    if refused:
        raise NotPortable.of(name, sorted(set(refused), key=lambda one: (one.line, one.construct)))


def _constructs(tree: exp.Expr) -> Iterator[Refused]:
    for node in tree.walk():
        if isinstance(node, exp.Anonymous):
            if node.name.lower() not in NAMED:
                yield _refused(node, f"the function {node.name}", "no rule says that Spark's gives the same")
        elif isinstance(node, exp.Func) and type(node).__name__ not in FUNCTIONS:
            yield _refused(
                node, f"the function {node.sql('duckdb').split('(')[0]}", "no rule says that Spark's gives the same"
            )
        elif isinstance(node, exp.SetOperation) and node.args.get("by_name"):
            yield _refused(node, "BY NAME", "Spark's SQL has no union by name; write the columns in the same order")
        elif isinstance(node, exp.ArrayAgg):
            yield from _ordered(node)
        elif isinstance(node, exp.TryCast) and node.to.this not in TRY_CAST_TO:
            yield _refused(node, f"TRY_CAST to {node.to.sql('duckdb')}", "only DOUBLE and DECIMAL are read alike")


def _ordered(node: exp.ArrayAgg) -> Iterator[Refused]:
    """A list has an order of its own elements, or none that both engines keep."""
    order = node.this if isinstance(node.this, exp.Order) else None
    keys = [key.this.sql() for key in order.expressions] if order is not None else []
    is_own = order is not None and keys == [order.this.sql()] and not order.expressions[0].args.get("desc")
    if not is_own:
        yield _refused(node, "list(x ORDER BY y)", "only list(x ORDER BY x) keeps its order on both")
    is_known = isinstance(node.parent, exp.Filter) and "IS NULL" in node.parent.expression.sql().upper()
    if not is_known:
        yield _refused(node, "list(x) without FILTER (WHERE x IS NOT NULL …)", "Spark leaves NULLs out, DuckDB not")


def _casts(whole: exp.Expr) -> Iterator[Refused]:
    """Casts whose argument's type makes them mean something else."""
    for node in whole.find_all(exp.Cast):
        kind = node.this.type
        if kind is None:
            continue
        before, after = kind.this, node.to.this
        if _has_fraction(kind) and after in INTEGERS:
            yield _refused(node, f"CAST of {before.name} to {after.name}", "DuckDB rounds, Spark truncates")
        if before in TIMES and after in exp.DataType.TEXT_TYPES:
            yield _refused(node, f"CAST of {before.name} to text", "the engines write times differently")


def _lengths(whole: exp.Expr) -> Iterator[Refused]:
    """`length` counts characters on both; of a list Spark's fails, and `len` says neither."""
    for node in whole.find_all(exp.Length):
        kind = node.this.type
        if kind is not None and kind.this in exp.DataType.NESTED_TYPES:
            yield _refused(node, "LENGTH of a list", "array_length is what both have")


def _has_fraction(kind: exp.DataType) -> bool:
    if kind.this == exp.DataType.Type.DECIMAL:
        scale = kind.expressions[1].name if len(kind.expressions) > 1 else "0"
        return scale != "0"
    return kind.this in FRACTIONS


def typed(tree: exp.Expr, types: Types) -> exp.Expr:
    """The query with every column named by its table, every * written out, and the type of each expression."""
    schema = MappingSchema(dict(types), dialect="duckdb")
    copy = tree.copy()
    try:
        copy = qualify(copy, schema=schema, dialect="duckdb", validate_qualify_columns=False, quote_identifiers=False)
    except SqlglotError as error:
        raise NotPortable(f"The query cannot be understood by sqlglot: {error}") from error
    return annotate_types(copy, schema=schema, dialect="duckdb")


def _refused(node: exp.Expr, construct: str, why: str) -> Refused:
    line = next((n.meta["line"] for n in node.walk() if "line" in n.meta), 1)
    return Refused(line, construct, why)
