"""DuckDB over one pinned version of a lake: the relations of `queries/`, filters, and a sandbox for users' SQL.

Only what a query names, and what that builds on, is put before it: binding every relation reads every Parquet footer
dozens of times, binding the few that a report needs takes milliseconds. Over a lake of few events what queries build
on is computed once and kept (`analytics.kept`).

The sandbox has two walls. The engine may open the pinned Parquet files and a private spill folder, nothing else, and
its configuration is locked. The text may hold one statement that only reads (`analytics.readsonly`).
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import duckdb

from analytics.errors import RunlakeError, UsageError
from analytics.kept import Keep, Kept, worth_keeping
from analytics.lake import Store
from analytics.places import is_remote
from analytics.readsonly import as_text, explain, only_reads
from analytics.relations import Relation, closure, composed, relations, words_of

if TYPE_CHECKING:
    from analytics.factfiles import FactFiles

_SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES\s*;?\s*", re.IGNORECASE)


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


Values = Mapping[str, tuple[str, Any]]


def _shows_catalog(words: set[str], needed: Mapping[str, Relation]) -> bool:
    """True: the query may show relations that it does not name, so all must be there."""
    if words & {"show", "describe"}:
        return not needed or "tables" in words
    return any(word.startswith(("duckdb_", "pragma_", "pg_", "information_schema")) for word in words)


class Session:
    """The relations of one pinned version of a lake.

    `one_by_one`: each answer is read to its end before the next is begun, so that queries with the same filters may
    share a connection, and with it what they build on. `keep`: what is kept of it, unless the lake's size says so.
    `with_facts`: what was computed before is read from files, and what was not is kept so (`analytics.factfiles`).
    """

    def __init__(
        self, store: Store, *, sandboxed: bool, one_by_one: bool = False, keep: Keep | None = None,
        with_facts: bool = False,
    ) -> None:  # fmt: skip
        self._files = {
            "event_files": store.files("event"),
            "refusal_files": store.files("refusal"),
            "source_files": store.files("source"),
        }
        self._relations = relations()
        self._made: set[str] = set()
        self._keep = _more(keep, worth_keeping(store))
        self._kept: Kept | None = None
        self._last: tuple[Filters, Kept] | None = None
        self._facts: FactFiles | None = None
        if with_facts and not is_remote(store.root):  # they are renamed into place, which object stores cannot
            from analytics.factfiles import FactFiles  # noqa: PLC0415 (checks want none)

            self._facts = FactFiles(store, lambda: self._cursor(None, _connect(with_frames=False)))
        self.sandboxed = sandboxed
        self._one_by_one = one_by_one
        self._root = _connect(with_frames=not sandboxed)
        if is_remote(store.root):
            from analytics.pinned import PinnedFiles  # noqa: PLC0415 (an extra)

            self._root.register_filesystem(PinnedFiles(store.root, store.sizes()))
        if sandboxed:
            paths = [path for files in self._files.values() for path in files]
            paths += self._facts.paths if self._facts is not None else []
            self._root.execute(f"SET allowed_paths = {_list(paths)}")
            self._root.execute("SET enable_external_access = false")
            self._root.execute("SET allow_community_extensions = false")
            self._root.execute("SET lock_configuration = true")

    def close(self) -> None:
        """Gives memory and spill space back, once no relation of it is left."""
        self._kept = self._last = None
        if self._facts is not None:
            self._facts.close()
        self._root.close()

    def keep_facts(self, on_progress: Callable[[int], None]) -> Exception | None:
        """Computes and keeps all that reports build on and that is not kept yet; what hinders it, if anything does."""
        if self._facts is None:
            raise ValueError("a session without facts keeps none")
        self._facts.provide(on_progress)
        return self._facts.hindrance

    def is_kept(self, name: str) -> bool:
        """True: a relation of the whole version is read, not computed."""
        return self._facts is not None and self._facts.has(name)

    def relation(
        self, sql: str, filters: Filters | None = None, values: Values | None = None
    ) -> duckdb.DuckDBPyRelation:
        """The rows of one statement, computed when they are fetched. A sandboxed session refuses what does not read.

        `values`: variables that the statement may ask for (getvariable): name → type and value.
        """
        sql = as_text(sql)
        if self.sandboxed:
            sql = only_reads(sql, self._root)
        if _SHOW_TABLES.fullmatch(sql):  # the names are known; making 90 views to list them takes 3 s
            return self._cursor(filters).sql(f"SELECT unnest({_list(self._relations)}) AS name ORDER BY name")
        words = words_of(sql)
        try:
            answer = self._with_views if self._keep == "nothing" else self._with_tables
            made = answer(sql, words, filters, values or {})
        except duckdb.CatalogException as error:
            raise self._no_relation(error) from error
        except duckdb.Error as error:
            raise explain(error) from error
        return self._root.sql("SELECT 1 AS done WHERE false") if made is None else made

    def over(self, table: Any, where: str | None) -> duckdb.DuckDBPyRelation:
        """The rows of an Arrow table that meet a user's condition on its columns."""
        cursor = self._root.cursor()
        cursor.register("these_rows", table)
        sql = "FROM these_rows" if where is None else f"FROM these_rows\nWHERE (\n{as_text(where)}\n)"
        try:
            return cursor.sql(only_reads(sql, self._root) if self.sandboxed else sql)
        except duckdb.Error as error:
            raise explain(error) from error

    def _with_views(
        self, sql: str, words: set[str], filters: Filters | None, values: Values
    ) -> duckdb.DuckDBPyRelation | None:
        """The query with all it needs before it; nothing is computed yet."""
        cursor, needed = self._cursor(filters), closure(words)
        _set(cursor, values)
        is_whole = filters is None or filters == Filters()  # only what no filter narrows is kept
        text = composed(sql, self._facts.needed(words) if self._facts is not None and is_whole else needed)
        if text is not None:
            with suppress(duckdb.Error):  # once more with views: the error then shows the user's own lines
                return cursor.sql(text)
        self._make(set(self._relations) if _shows_catalog(words, needed) else needed.keys())
        return cursor.sql(sql)

    def _with_tables(
        self, sql: str, words: set[str], filters: Filters | None, values: Values
    ) -> duckdb.DuckDBPyRelation | None:
        """The query with what it names before it, and what that builds on computed and kept."""
        cursor, kept = self._kept_for(filters or Filters())
        _set(cursor, values)
        try:
            named = {name.lower() for name in cursor.get_table_names(sql)}
        except duckdb.Error:  # not for us to explain: it fails once more below, or it is no query
            named = words
        needed = closure(named)
        if _shows_catalog(words, needed):
            kept.make(self._relations)
            return cursor.sql(sql)
        if self._facts is not None and kept is self._kept:
            try:
                needed = self._facts.there(named)
                kept.make(self._facts.among(needed))
                self._facts.save(needed, cursor)
            except duckdb.Error:  # a file that was deleted under us or is damaged: all can be computed
                self._facts, needed = None, closure(named)
        last = needed.keys() - {name for relation in needed.values() for name in relation.builds_on}
        kept.make({name: relation for name, relation in needed.items() if name not in last})
        text = composed(sql, {name: needed[name] for name in needed if name in last and name not in kept.made})
        if text is not None:
            with suppress(duckdb.Error):  # once more without WITH: the error then shows the user's own lines
                return cursor.sql(text)
        kept.make(needed)
        return cursor.sql(sql)

    def _kept_for(self, filters: Filters) -> tuple[duckdb.DuckDBPyConnection, Kept]:
        """A connection that sees what is kept for these filters. What filters leave is kept by its connection alone."""
        if filters == Filters():
            if self._kept is None:
                self._kept = Kept(self._cursor(None), self._keep, is_shared=True)
            return self._cursor(None), self._kept
        if self._one_by_one and self._last is not None and self._last[0] == filters:
            return self._last[1].cursor, self._last[1]
        kept = Kept(self._cursor(filters), self._keep, is_shared=False)
        self._last = (filters, kept) if self._one_by_one else None
        return kept.cursor, kept

    def _cursor(
        self, filters: Filters | None, root: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyConnection:
        """A connection of its own, since variables belong to a connection and filters must not outlive their query."""
        cursor = (root or self._root).cursor()
        for name, paths in self._files.items():
            cursor.execute(f"SET VARIABLE {name} = {_list(paths)}")
        for name, value in (filters or Filters()).variables().items():
            cursor.execute(f"SET VARIABLE {name} = {_literal(value)}")
        return cursor

    def _make(self, wanted: Collection[str]) -> None:
        for name, relation in self._relations.items():
            if name in wanted and name not in self._made:
                # bound when it is asked for: binding all of them takes seconds
                self._cursor(None).execute(relation.as_view())
                self._made.add(name)

    def _no_relation(self, error: duckdb.Error) -> RunlakeError:
        """A missing table gets our names as the hint; the engine knows only those already made."""
        missing = re.search(r"Table with name (\S+) does not exist", str(error))
        if missing is None:
            return explain(error)
        return UsageError.unknown_name("relation", missing[1], list(self._relations))


def _set(cursor: duckdb.DuckDBPyConnection, values: Values) -> None:
    """The variables of one query; the values reach DuckDB bound, never as text of the statement."""
    for name, (kind, value) in values.items():
        cursor.execute(f'SET VARIABLE "{name}" = CAST(? AS {kind})', [value])


def _more(asked: Keep | None, fitting: Keep) -> Keep:
    """What is kept: the more of what is asked for and what the size of the lake suggests."""
    order: tuple[Keep, ...] = ("nothing", "facts", "all")
    return max(asked or "nothing", fitting, key=order.index)


def _connect(*, with_frames: bool) -> duckdb.DuckDBPyConnection:
    """An engine that takes half of the memory, and spills what needs more. `with_frames`: it finds Python's tables."""
    config: dict[str, Any] = {
        "temp_directory": f"{_spill_folder()}/{os.urandom(4).hex()}",
        "memory_limit": f"{_memory_bytes() // 2 >> 20}MiB",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": with_frames,
        "python_scan_all_frames": with_frames,
    }
    made = duckdb.connect(config=config)
    made.execute("SET GLOBAL TimeZone = 'UTC'")
    made.execute("SET GLOBAL parquet_metadata_cache = true")
    return made


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
