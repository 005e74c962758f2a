"""DuckDB over one pinned version of a lake: the relations of `queries/`, filters, and a sandbox for users' SQL.

A relation is created when a query first names it, after those it builds on: binding all of them reads every Parquet
footer dozens of times, binding the few a report needs takes milliseconds.

The sandbox has two walls. The engine may open the pinned Parquet files and a private spill folder, nothing else, and
its configuration is locked. The text may hold one statement that only reads: the engine alone lets COPY inside a WITH
overwrite those very Parquet files (seen on duckdb 2.0.1), so the syntax tree is checked, not the first word.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import duckdb
import msgspec

from analytics import sqlfiles
from analytics.errors import RunlakeError, UsageError
from analytics.lake import Store

# table functions that read nothing but their arguments, the catalog, or Parquet files the engine allows
TABLE_FUNCTIONS = frozenset({
    "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "summary", "histogram",
    "histogram_values", "read_parquet", "parquet_scan", "parquet_metadata", "parquet_file_metadata",
    "parquet_schema", "parquet_kv_metadata", "duckdb_columns", "duckdb_functions", "duckdb_keywords",
    "duckdb_settings", "duckdb_tables", "duckdb_types", "duckdb_variables", "duckdb_views", "pragma_table_info",
    "pragma_version", "pg_timezone_names",
})  # fmt: skip
QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
# words after which a query may look at relations it does not name
CATALOG_WORDS = frozenset({"show", "describe", "tables", "pg_catalog", "information_schema"})

_COMMENT = re.compile(r"--[^\n]*")
_WORD = re.compile(r"[a-z_][a-z0-9_]*")
_EXPLAIN = re.compile(r"\s*EXPLAIN(\s+ANALYZE)?(?=[\s(])(\s*\(\s*FORMAT\s+\w+\s*\))?", re.IGNORECASE)
_READS_ONLY = (
    "`runlake sql` takes one statement that reads: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, SHOW, EXPLAIN"
)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which runs count: each None is no filter. They reach the SQL as variables and are applied once, on pieces."""

    wire: str | None = None
    run: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def variables(self) -> dict[str, Any]:
        """The DuckDB variables that are set."""
        named = {"only_wire": self.wire, "only_run": self.run, "since": self.since, "until": self.until}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Relation:
    """What one file of `queries/` creates, and the other relations its text names."""

    text: str
    words: frozenset[str]


@cache
def relations() -> dict[str, Relation]:
    """All relations by name, each after those it builds on."""
    texts = {file.relation: file.text for file in sqlfiles.load() if file.relation is not None}
    return {name: Relation(text, frozenset(words_of(text) & texts.keys() - {name})) for name, text in texts.items()}


def words_of(sql: str) -> set[str]:
    """Every word of a query that could be a relation's name; comments left out."""
    return set(_WORD.findall(_COMMENT.sub(" ", sql).lower()))


class Session:
    """The relations of one pinned version of a lake."""

    def __init__(self, store: Store, *, sandboxed: bool) -> None:
        self._files = {
            "event_files": store.files("event"),
            "refusal_files": store.files("refusal"),
            "source_files": store.files("source"),
        }
        self._relations = relations()
        self._made: set[str] = set()
        self.sandboxed = sandboxed
        config: dict[str, Any] = {
            "temp_directory": f"{_spill_folder()}/{secrets.token_hex(4)}",
            "memory_limit": f"{_memory_bytes() // 2 >> 20}MiB",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": not sandboxed,
            "python_scan_all_frames": not sandboxed,
        }
        self._root = duckdb.connect(config=config)
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")
        if sandboxed:
            paths = [path for files in self._files.values() for path in files]
            self._root.execute(f"SET allowed_paths = {_list(paths)}")
            self._root.execute("SET enable_external_access = false")
            self._root.execute("SET allow_community_extensions = false")
            self._root.execute("SET lock_configuration = true")

    def close(self) -> None:
        """Gives memory and spill space back, once no relation of it is left."""
        self._root.close()

    def relation(self, sql: str, filters: Filters | None = None) -> duckdb.DuckDBPyRelation:
        """The rows of one statement, computed when they are fetched. A sandboxed session refuses what does not read."""
        cursor = self._cursor(filters)
        if self.sandboxed:
            sql = only_reads(sql, self._root)
        words = words_of(sql)
        shows_catalog = words & CATALOG_WORDS or any(word.startswith(("duckdb_", "pragma_", "pg_")) for word in words)
        self._make(set(self._relations) if shows_catalog else self._needed(words))
        try:
            made: duckdb.DuckDBPyRelation | None = cursor.sql(sql)
        except duckdb.CatalogException as error:
            raise self._no_relation(error) from error
        except duckdb.Error as error:
            raise explain(error) from error
        if made is None:  # a trusted statement without rows
            made = cursor.sql("SELECT 1 AS done WHERE false")
        return made

    def _cursor(self, filters: Filters | None) -> duckdb.DuckDBPyConnection:
        """A connection of its own, since variables belong to a connection and filters must not outlive their query."""
        cursor = self._root.cursor()
        for name, paths in self._files.items():
            cursor.execute(f"SET VARIABLE {name} = {_list(paths)}")
        for name, value in (filters or Filters()).variables().items():
            cursor.execute(f"SET VARIABLE {name} = {_literal(value)}")
        return cursor

    def _needed(self, words: set[str]) -> set[str]:
        """The relations among the words, and all they build on."""
        wanted: set[str] = set()
        following = words & self._relations.keys()
        while following:
            wanted |= following
            following = {word for name in following for word in self._relations[name].words} - wanted
        return wanted

    def _make(self, wanted: set[str]) -> None:
        for name, relation in self._relations.items():
            if name in wanted and name not in self._made:
                self._cursor(None).execute(relation.text)
                self._made.add(name)

    def _no_relation(self, error: duckdb.Error) -> RunlakeError:
        """A missing table gets our names as the hint; the engine knows only those already made."""
        missing = re.search(r"Table with name (\S+) does not exist", str(error))
        if missing is None:
            return explain(error)
        return UsageError.unknown_name("relation", missing[1], list(self._relations))


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
    kind: str = statements[0].type.name
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
        tree = msgspec.json.decode(row[0]) if row else {"error": True}
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


@cache
def _spill_folder() -> str:
    """A private folder outside the lake; DuckDB makes a folder per session in it when it first spills."""
    folder = tempfile.mkdtemp(prefix="runlake-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _memory_bytes() -> int:
    """The machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(_text(value) for value in values) + "]"


def _literal(value: str | datetime) -> str:
    return _text(value) if isinstance(value, str) else f"TIMESTAMPTZ '{value.isoformat()}'"
