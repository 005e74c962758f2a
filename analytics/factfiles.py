"""What reports build on, computed once for a version and kept as Parquet inside the lake.

A folder `_facts/KEY` holds one file per relation. The key is made of all that their rows come from: the version's data
files, the text of every query, runlake and DuckDB. So nothing in it can be stale: another version, another query is
another folder. Files are written beside, then get their name and keep it: several readers may compute at once, and a
killed one leaves nothing that is read. Who may not write in the lake computes; so does who asks with filters, and
`runlake check`. No version of the lake names these files: they can be deleted at any time.

Measured on 2 cores: over 9.7 million events of 17,200 runs all of them take 12 CPU s to compute and 0.1 to read
(`runlake compact` does it, see `analytics.keeping`); over the 3,600 events of the sample corpus the main reports take
1.3 CPU s computed and 0.4 read, start-up included.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from analytics import sqlfiles
from analytics.lakefiles import runlake_version
from analytics.relations import Relation, closure, composed, relations
from analytics.vacuum import FACTS_FOLDER, vacuum_facts

if TYPE_CHECKING:
    from analytics.lake import Store

# few rows beside the events they come from, and what the main reports read
KEPT = (
    "run_pieces", "piece_links", "run_states", "runs", "decisions", "limit_samples", "token_usage",
    "rate_limit_windows", "denials", "tool_calls_unfinished", "run_metrics",
)  # fmt: skip
_SAY_USED_AFTER_S = 3600


class FactFiles:
    """The kept relations of one version. `connect` opens an engine that may write, and knows the version's files."""

    def __init__(self, store: Store, connect: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        self._root, self._is_shared = store.root, store.settings.shared
        self.folder = store.root / FACTS_FOLDER / key_of(store)
        self._mark = f"{os.getpid()}.{os.urandom(3).hex()}"
        self._one_at_a_time = threading.Lock()
        self._connect = connect
        self._engine: duckdb.DuckDBPyConnection | None = None
        self.hindrance: Exception | None = None  # why nothing (more) is written: a full disk, no right
        if not os.access(self._root, os.W_OK):
            self.hindrance = PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    @property
    def paths(self) -> list[str]:
        """Where the files stand, or will, and what they are called while they are written."""
        return [str(path(name)) for name in KEPT for path in (self._path, self._beside)]

    def has(self, name: str) -> bool:
        """True: the relation is kept."""
        return name in KEPT and self._path(name).exists()

    def needed(self, words: Iterable[str]) -> dict[str, Relation]:
        """The relations a query needs, the kept ones as files; those that are not there yet are computed."""
        words = set(words)
        for name in closure(words, self._as_files(KEPT)):
            self._provide(name)
        return self.there(words)

    def provide(self, on_progress: Callable[[int], None]) -> None:
        """Computes and keeps all that is not there yet, one relation after another, until something hinders it.

        `on_progress` is told before each how many are done.
        """
        for done, name in enumerate(KEPT):
            if self.hindrance is None:
                on_progress(done)
                self._provide(name)

    def there(self, words: Iterable[str]) -> dict[str, Relation]:
        """The relations a query needs, those that are there as files."""
        found = closure(words, self._as_files(name for name in KEPT if self._path(name).exists()))
        if found.keys() & set(KEPT):
            self._say_used()
        return found

    def among(self, needed: Mapping[str, Relation]) -> dict[str, Relation]:
        """Of the relations a query needs, the kept ones and all that these build on."""
        wanted: set[str] = set()
        following = needed.keys() & set(KEPT)
        while following:
            wanted |= following
            following = {word for name in following for word in needed[name].builds_on} - wanted
        return {name: relation for name, relation in needed.items() if name in wanted}

    def save(self, names: Iterable[str], engine: duckdb.DuckDBPyConnection) -> None:
        """Keeps relations that were computed for a query as tables."""
        for name in names:
            if name in KEPT and self.hindrance is None and not self._path(name).exists():
                self._write(name, f"FROM {name}", engine)

    def close(self) -> None:
        """Gives back the memory of what computes."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def _beside(self, name: str) -> Path:
        return self.folder / f".{name}.{self._mark}.tmp"

    def _as_files(self, names: Iterable[str]) -> dict[str, Relation]:
        made = {}
        for name in names:
            query = f"FROM read_parquet({sqlfiles.quoted(str(self._path(name)))})"
            made[name] = Relation(f"CREATE OR REPLACE VIEW {name} AS\n{query};\n", query, frozenset())
        return made

    def _provide(self, name: str) -> None:
        """Computes a kept relation, after those it builds on, unless its file is there or cannot be."""
        if name not in KEPT:
            return
        if self.hindrance is None and not self._path(name).exists():
            needed = self.needed(relations()[name].builds_on)
            text = composed(f"FROM {name}", needed | {name: relations()[name]})
            if text is None:
                raise ValueError(f"{name} is kept, but is no view")
            if self._engine is None:
                self._engine = self._connect()
            self._write(name, text, self._engine)

    def _write(self, name: str, query: str, engine: duckdb.DuckDBPyConnection) -> None:
        try:
            with self._one_at_a_time:  # threads of a session write beside under the same name
                if not self._path(name).exists():
                    self._put(name, query, engine)
        except (OSError, duckdb.IOException) as error:  # a full disk, a lake that went read-only: the query computes it
            self.hindrance = error

    def _put(self, name: str, query: str, engine: duckdb.DuckDBPyConnection) -> None:
        if not self.folder.exists():
            vacuum_facts(self._root)
            self.folder.mkdir(mode=0o777 if self._is_shared else 0o700, parents=True, exist_ok=True)
            if not self._is_shared:  # whatever the umask takes away
                self.folder.parent.chmod(0o700)
                self.folder.chmod(0o700)
        beside = self._beside(name)
        try:
            engine.execute(f"COPY (\n{query}\n) TO {sqlfiles.quoted(str(beside))} (FORMAT parquet, COMPRESSION zstd)")
            handle = os.open(beside, os.O_RDONLY)
            try:
                if not self._is_shared:
                    os.fchmod(handle, 0o600)
                os.fsync(handle)
            finally:
                os.close(handle)
            _place(beside, self._path(name))
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)

    def _say_used(self) -> None:
        """Keeps the folder from being deleted as forgotten."""
        with suppress(OSError):  # not ours to touch
            if time.time() - self.folder.stat().st_mtime > _SAY_USED_AFTER_S:
                os.utime(self.folder)


def _place(beside: Path, path: Path) -> None:
    """Puts a file where it belongs, unless another reader was first.

    The rows are the same, the bytes need not be: who reads the first file must not find the second under its name.
    """
    try:
        path.hardlink_to(beside)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        beside.replace(path)


def key_of(store: Store) -> str:
    """A name for all that the rows of a version's relations come from."""
    said = [runlake_version(), duckdb.__version__, sqlfiles.views_sql()]
    said += [f"{file.relative} {file.rows} {file.size_bytes}" for file in store.all_files]
    return hashlib.blake2b("\n".join(said).encode(), digest_size=16).hexdigest()
