"""The text of a user's query: one statement that only reads, or a usage error that says what it is.

The engine's own walls let COPY inside a WITH overwrite the very Parquet files that may be read (seen on duckdb 2.0.1),
so the syntax tree is checked, not the first word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from analytics.errors import RunlakeError, UsageError

# table functions that read nothing but their arguments, the catalog, or Parquet files the engine allows
TABLE_FUNCTIONS = frozenset({
    "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "summary", "histogram",
    "histogram_values", "read_parquet", "parquet_scan", "parquet_metadata", "parquet_file_metadata",
    "parquet_schema", "parquet_kv_metadata", "duckdb_columns", "duckdb_functions", "duckdb_keywords",
    "duckdb_settings", "duckdb_tables", "duckdb_types", "duckdb_variables", "duckdb_views", "pragma_table_info",
    "pragma_version", "pg_timezone_names",
})  # fmt: skip
QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})

_EXPLAIN = re.compile(r"\s*EXPLAIN(\s+ANALYZE)?(?=[\s(])(\s*\(\s*FORMAT\s+\w+\s*\))?", re.IGNORECASE)
_READS_ONLY = (
    "`runlake sql` takes one statement that reads: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, SHOW, EXPLAIN"
)


def as_text(sql: str) -> str:
    """The query as text; bytes that the locale could not read are UTF-8, or a usage error."""
    try:
        return sql.encode("utf-8", "surrogateescape").decode()
    except UnicodeError as error:
        raise UsageError(f"The query is not UTF-8 text: {error}. Write it in UTF-8.") from None


def only_reads(sql: str, connection: duckdb.DuckDBPyConnection) -> str:
    """The statement, if it is the only one and can only read; else a usage error that names what it is."""
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise explain(error) from error
    if not statements:
        raise UsageError(f"The query is empty. {_READS_ONLY}.")
    if len(statements) > 1:
        raise UsageError(f"The text holds {len(statements)} statements. {_READS_ONLY}.")
    text: str = statements[0].query
    try:
        kind: str = statements[0].type.name
    except ValueError:  # a statement that DuckDB's Python package has no name for: UPDATE EXTENSIONS
        kind = "A statement of this kind"
    if kind == "EXPLAIN":
        prefix = _EXPLAIN.match(text)
        if prefix is None:
            raise UsageError("EXPLAIN must be the first word of the text, in the form EXPLAIN [ANALYZE] QUERY.")
        return prefix[0] + "\n" + only_reads(text[prefix.end() :], connection)
    if kind == "MULTI":
        raise UsageError("This PIVOT would create a type. Name its columns: PIVOT … ON column IN ('a', 'b').")
    if kind != "SELECT":
        raise UsageError(f"{kind.replace('_', ' ')} is not allowed here. {_READS_ONLY}.")
    _check_tree(text, connection)
    return text


def _check_tree(sql: str, connection: duckdb.DuckDBPyConnection) -> None:
    """Refuses nodes that write (COPY, INSERT, … inside a WITH) and table functions not on the list."""
    try:
        row = connection.execute("SELECT json_serialize_sql(?::VARCHAR, skip_null := true)", [sql]).fetchone()
        tree = json.loads(row[0]) if row else {"error": True}
    except (duckdb.Error, RecursionError) as error:
        raise UsageError("The query cannot be checked: it nests too deep. Write it flatter.") from error
    if tree["error"]:
        raise UsageError(f"The query cannot be checked ({tree.get('error_message')}). {_READS_ONLY}.")
    for node in _nodes(tree):
        type_ = node.get("type")
        if isinstance(type_, str) and type_.endswith("_NODE") and type_ not in QUERY_NODES:
            kind = type_.removesuffix("_NODE").removesuffix("_QUERY").replace("_", " ")
            raise UsageError(f"{kind} inside a query is not allowed here. {_READS_ONLY}.")
        if type_ == "TABLE_FUNCTION":
            name = node["function"].get("function_name", "")
            if name.lower() not in TABLE_FUNCTIONS:
                raise UsageError.unknown_name(
                    "table function open to `runlake sql` called", name, sorted(TABLE_FUNCTIONS)
                )


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of a JSON tree, without recursion."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def explain(error: Exception) -> RunlakeError:
    """DuckDB's own words (they hold the place in the query); what it could not find or parse is the user's to mend."""
    kind = RunlakeError
    if isinstance(error, duckdb.CatalogException | duckdb.BinderException | duckdb.ParserException):
        kind = UsageError
    words = str(error).strip()
    remedy = ""
    if isinstance(error, duckdb.PermissionException):
        remedy = "\n`runlake sql` reads only the lake's own files and changes no setting."
    elif isinstance(error, duckdb.OutOfMemoryException):
        remedy = "\nAsk for less at once (filters, fewer columns), or free space in the temporary folder."
    return kind(f"The query failed. {words}{remedy}")
