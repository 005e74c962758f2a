"""The files inside a lake folder: how they are named, written, described for a commit, and made durable.

A data file's name begins with its order key (ingest id and number), so sorting names gives the order in which rows
came in; a file that replaces others keeps the key of the first of them.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from analytics.errors import CannotWrite, LakeError
from analytics.places import Place, footer, is_remote, where
from analytics.schema import Record, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

EMPTY_WIRE = "none"  # the partition of the zero-row files: never a wire, since no row stands in it
ROW_GROUP_ROWS = 65_536
_STAT_COLUMNS = ("source_id", "run_id", "ts")
_NO_STATISTICS = {"payload", "raw", "attributes", "tail", "skeleton", "resume_state"}
_RISING = ("line", "byte_offset", "seq", "ts")  # as differences: a quarter less than with dictionaries, payload aside
# which seldom say the same twice in a row group: a dictionary of them is made in vain, and its pages compress worse
_VARIED = (
    "event_key", "usage_key", "request_id", "call_id", "text_chars", "duration_ms", "context_tokens", "input_tokens",
    "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens", "output_tokens", "reasoning_tokens",
)  # fmt: skip
_STAT_TEXT_BYTES = 64  # a longer text would have to be cut, and a cut maximum is no maximum
_WIRE = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A Parquet file standing in the lake folder, whether committed already or not."""

    relative: str
    record: Record
    wire: str
    rows: int
    size_bytes: int

    @property
    def order_key(self) -> str:
        """The ingest id and number of the first rows in it."""
        return self.relative.rsplit("/", 1)[1].removesuffix(".parquet").split(".", 1)[0]


@cache
def runlake_version() -> str:
    """The installed version of runlake; the look-up takes 0.4 ms, and each source asks."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (15 ms)

    try:
        return version("runlake")
    except PackageNotFoundError:
        return "0+unknown"


def new_ingest_id() -> str:
    """A new name for an ingest; names sort by time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z-{os.urandom(3).hex()}"


def data_path(
    record: Record, wire: str, ingest_id: str, number: int, *, in_place_of: str | None = None, attempt: str = ""
) -> str:
    """The path inside the lake of a new data file. `in_place_of` is the order key of the first file it replaces.

    `attempt` keeps two runs of the same task apart.
    """
    if not _WIRE.fullmatch(wire):
        raise ValueError(f"{wire!r} cannot name a partition of the lake")
    key = f"{ingest_id}-{number:05d}"
    name = key if in_place_of is None else f"{in_place_of}.{key}"
    name += f".{attempt}" if attempt else ""
    return f"record={record}/wire={wire}/{name}.parquet"


@contextmanager
def private(*, shared: bool) -> Iterator[None]:
    """New files are 0600 and new folders 0700 inside, unless the lake is shared. The mask belongs to the process."""
    before = os.umask(0o077)
    try:
        if shared:
            os.umask(before)
        yield
    finally:
        os.umask(before)


def writer_options(schema: pa.Schema, level: int) -> dict[str, Any]:
    """How the columns are written. The texts that never repeat are spared the attempt at a dictionary."""
    unique = {"payload", "raw", "raw_sha256", "tail", "skeleton", "resume_state", "digest", *_RISING, *_VARIED}
    return {
        "compression": "zstd", "compression_level": level, "store_schema": False,
        "use_dictionary": [name for name in schema.names if name not in unique],
        "write_statistics": [name for name in schema.names if name not in _NO_STATISTICS],
        "data_page_size": 2 << 20, "max_rows_per_page": 1 << 20,
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name in _RISING if name in schema.names},
    }  # fmt: skip


def parquet_writer(
    path: Place, record: Record, *, level: int = 3, schema: pa.Schema | None = None, **more: Any
) -> pq.ParquetWriter:
    """A writer for one record kind's file.

    `schema`: the same columns in other Arrow types that give the same Parquet types. `more`: other options of the
    writer, or the same options otherwise.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 (0.15 s; who only reads reports needs none)

    schema = schema or arrow_schema(record)
    if not is_remote(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    to = where(path)
    writer = pq.ParquetWriter(to, schema, **(writer_options(schema, level) | more))
    if to is not path:
        writer.file_handle = to  # closed with the writer, as it does with a file it opens itself
    return writer


def abandon(writer: pq.ParquetWriter) -> None:
    """After a failure: do not try to finish the file (pyarrow would, when the writer is collected)."""
    writer.is_open = False
    if hasattr(writer.file_handle, "abandon"):
        writer.file_handle.abandon()


def bytes_so_far(path: Place, writer: pq.ParquetWriter) -> int:
    """How much of a file that is still being written has left memory."""
    return int(writer.file_handle.tell()) if is_remote(path) else path.stat().st_size


def describe(root: Place, relative: str) -> WrittenFile:
    """What a finished data file holds, from its footer."""
    record, wire = partition_of(relative)
    read, size = footer(root / relative)
    return WrittenFile(relative, record, wire, read.num_rows, size)


def size_of(path: Place) -> int | None:
    """The size of a file; None where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def partition_of(relative: str) -> tuple[Record, str]:
    """Record kind and wire of a path inside the lake."""
    found = re.fullmatch(r"record=(event|refusal|source)/wire=([^/]+)/[^/]+\.parquet", relative)
    if found is None or not _WIRE.fullmatch(found[2]):
        raise LakeError.misfit(relative, "its path is not record=…/wire=…/….parquet")
    record: Any = found[1]
    return record, found[2]


def delta_stats(root: Place, file: WrittenFile) -> str:
    """Delta's statistics of a file, and on the way the proof that the file is what it is said to be."""
    import pyarrow as pa  # noqa: PLC0415 (the same)

    try:
        read, size = footer(root / file.relative)
    except (OSError, pa.ArrowInvalid) as error:
        raise LakeError.misfit(file.relative, f"it cannot be read ({error})") from error
    if (read.num_rows, size) != (file.rows, file.size_bytes):
        said = f"{file.rows} rows in {file.size_bytes} bytes"
        raise LakeError.misfit(file.relative, f"it holds {read.num_rows} rows in {size} bytes, not {said}")
    lowest, highest = {}, {}
    for name in _STAT_COLUMNS:
        bounds = _bounds(read, name)
        if bounds is not None:
            lowest[name], highest[name] = bounds
    return json.dumps({"numRecords": file.rows, "minValues": lowest, "maxValues": highest, "nullCount": {}})


def _bounds(footer: pq.FileMetaData, name: str) -> tuple[str, str] | None:
    at = next((i for i in range(footer.num_columns) if footer.schema.column(i).path == name), None)
    if at is None or footer.num_row_groups == 0:
        return None
    low: Any = None
    high: Any = None
    for group in range(footer.num_row_groups):
        stats = footer.row_group(group).column(at).statistics
        if stats is None or not stats.has_min_max:
            return None
        low = stats.min if low is None else min(low, stats.min)
        high = stats.max if high is None else max(high, stats.max)
    if isinstance(low, datetime):
        return f"{low:%Y-%m-%dT%H:%M:%S.%f}Z", f"{high:%Y-%m-%dT%H:%M:%S.%f}Z"
    too_long = max(len(low.encode()), len(high.encode())) > _STAT_TEXT_BYTES
    return None if too_long else (low, high)


@contextmanager
def writing(root: Place) -> Iterator[None]:
    """What the operating system (or the store) refuses inside is told as a sentence, with the file or the lake."""
    try:
        yield
    except OSError as error:
        raise CannotWrite.at("write to", error.filename or root, error) from error


def write_text(path: Place, text: str) -> None:
    """Replaces a small file so that a reader sees the old text or the new one, never a part."""
    if is_remote(path):
        from analytics import objects  # noqa: PLC0415 (local lakes need none of it)

        with writing(path):
            objects.write_text(str(path), text)
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(3).hex()}.tmp")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise CannotWrite.from_os("write", path, error) from error


_held: dict[tuple[str, int], tuple[int, int]] = {}  # (lake, thread) → (file descriptor, depth)


def _forget_in_child() -> None:
    """A forked worker must not keep the lock alive after its parent was killed."""
    for handle, _ in _held.values():
        with suppress(OSError):
            os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)


@contextmanager
def lock(
    root: Place, *, on_wait: Callable[[str], None] | None = None, wait: bool = True, shared: bool = False
) -> Iterator[bool]:
    """One writer per lake. The kernel releases the lock when its holder ends, however it ends.

    On an object store there is no lock: writers of all hosts go on at once, and `commits` finds out who was first.

    The thread that holds it may take it again. If somebody else holds it, `on_wait` gets one sentence; with
    `wait=False` the body runs at once, told False.
    """
    if is_remote(root):
        yield True
        return
    key = (str(root), threading.get_ident())
    if key in _held:
        handle, depth = _held[key]
        _held[key] = (handle, depth + 1)
    else:
        got = _acquire(root / ".lock", on_wait, wait=wait, mode=0o666 if shared else 0o600)
        if got is None:
            yield False
            return
        _held[key] = (got, 1)
    try:
        yield True
    finally:
        handle, depth = _held[key]
        if depth > 1:
            _held[key] = (handle, depth - 1)
        else:
            del _held[key]
            os.close(handle)


def _acquire(path: Place, on_wait: Callable[[str], None] | None, *, wait: bool, mode: int) -> int | None:
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        except OSError as error:
            raise CannotWrite.from_os("open the lock", path, error) from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    os.close(handle)
                    return None
                if on_wait is not None:
                    holder = os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "another process"
                    on_wait(f"Waiting for {holder}, which is writing to {path.parent}.")
                fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_still_there(handle, path):
                with suppress(OSError):  # a full disk: the lock holds without saying whose it is
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _is_still_there(handle: int, path: Place) -> bool:
    """False: the lake was deleted and made anew while we waited, so our lock guards nothing."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
