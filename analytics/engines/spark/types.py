"""The column types of every relation, as DuckDB sees them: what the gate of `portable` judges casts by."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from analytics.engines.spark.portable import Types
from analytics.lake import Store
from analytics.lakefiles import EMPTY_WIRE
from analytics.relations import Relation, relations
from analytics.schema import RECORDS
from analytics.sqlfiles import quoted


def relation_types(store: Store) -> Types:
    """Types by relation and column, from the zero-row files that every lake has: each relation is made, of no rows."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for record in RECORDS:
        empty = [f.relative for f in store.all_files if f.record == record and f.wire == EMPTY_WIRE]
        paths = ", ".join(quoted(str(store.root / relative)) for relative in empty)
        connection.execute(f"SET VARIABLE {record}_files = [{paths}]")
    return {name: _made(connection, name, relation) for name, relation in _queries()}


def _queries() -> Iterable[tuple[str, Relation]]:
    return ((name, relation) for name, relation in relations().items() if relation.query is not None)


def _made(connection: duckdb.DuckDBPyConnection, name: str, relation: Relation) -> dict[str, str]:
    connection.execute(f'CREATE TEMP TABLE "{name}" AS {relation.query}')
    return {column: kind for column, kind, *_ in connection.execute(f'DESCRIBE "{name}"').fetchall()}
