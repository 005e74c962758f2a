"""The lake's files written anew: many small ones as few large ones.

Compaction gathers the rows of a source, which may stand in one file per ingest, and writes them into the same row
groups; sources keep the order in which they first came in. Inside a row group events stand by kind, then by source and
line: over 2 M events that takes 11 % off the CPU of the main reports, since columns that only some kinds have become
runs of NULL; it makes the files of some wires smaller and those of others larger (benchmarks/RESULTS.md, Layout, with
all that was measured). It reads in two passes: the first sees only `source_id`
and `line` and finds the stretches of rows that belong together; the second writes them in chunks that fit in
memory, decoding each row group once per chunk that needs it. Of the ledger only the latest revision of a source is
kept; older ones stay in older versions of the lake.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics import lakefiles
from analytics.lakefiles import EMPTY_WIRE, ROW_GROUP_ROWS, WrittenFile
from analytics.places import parquet_file
from analytics.schema import Record, arrow_schema

if TYPE_CHECKING:
    from analytics.lake import Store

TARGET_BYTES = 256 << 20
_CHUNK_BYTES = 64 << 20
_BATCH_ROWS = 8192
_BATCH_BYTES = 32 << 20
# What single events are looked up by: a Bloom filter for each lets a reader pass over the row groups that lack a value.
# They cost 0.2 % of the bytes and 2 to 5 % of the CPU of writing; an ingest, which counts every percent, has none.
LOOKED_UP = ("run_id", "source_id", "call_id", "request_id", "usage_key")
FALSE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Saved:
    """What a compaction did."""

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


@dataclass(slots=True)
class _Stretch:
    """Consecutive rows of one source in one file; all in one row group."""

    file: int
    group: int
    before: int  # rows of the file before the row group
    start: int
    stop: int
    rank: int
    line: int
    size: int


def compact(store: Store, target_bytes: int, on_progress: Callable[[str, int], None] | None) -> tuple[Store, Saved]:
    """Compacts every partition that gains by it, in one commit. The caller holds the lock."""
    ingest_id = lakefiles.new_ingest_id()
    added: list[WrittenFile] = []
    removed: list[WrittenFile] = []
    partitions: dict[tuple[Record, str], list[WrittenFile]] = defaultdict(list)
    for file in store.all_files:
        if file.wire != EMPTY_WIRE:
            partitions[file.record, file.wire].append(file)
    latest = _latest_revisions(store)
    for (record, wire), files in sorted(partitions.items()):
        small = [file for file in files if file.size_bytes < target_bytes // 2]
        is_loose = record == "event" and any(_is_of_ingest(file) for file in small)
        stale = record == "source" and sum(f.rows for f in files) > latest[wire]
        chosen = files if stale else small
        if len(chosen) < 2 and not stale and not is_loose:
            continue
        keep = _latest_rows(store, chosen) if record == "source" else None
        added += _rewrite(store.root, chosen, target_bytes, ingest_id, len(added), keep, on_progress)
        removed += chosen
    saved = Saved(len(removed), len(added), sum(f.size_bytes for f in removed), sum(f.size_bytes for f in added))
    if not removed:
        return store, saved
    note = f"compact {saved.files_before} files into {saved.files_after}"
    done = store.commit(added, [f.relative for f in removed], ingest_id=ingest_id, note=note, is_new_data=False)
    return done, saved


def _is_of_ingest(file: WrittenFile) -> bool:
    """True: written in haste, with the lowest level of compression. A file that replaces others says so in its name."""
    return Path(file.relative).stem == file.order_key


def _rewrite(
    root: Path, files: Sequence[WrittenFile], target_bytes: int, ingest_id: str, number: int,
    keep: set[tuple[int, int]] | None, on_progress: Callable[[str, int], None] | None,
) -> list[WrittenFile]:  # fmt: skip
    record, wire = files[0].record, files[0].wire
    paths = [root / file.relative for file in files]  # opened when needed: there may be more than we may hold open
    stretches = _stretches(paths, record)
    if keep is not None:
        stretches = [one for whole in stretches for one in _kept(whole, keep)]
    stretches.sort(key=lambda s: (s.rank, s.line, s.file, s.group, s.start))
    out = _Output(root, record, wire, target_bytes, ingest_id, number)
    for chunk, ends_source in _chunks(stretches):
        if out.key is None:
            out.key = files[min(s.file for s in chunk)].order_key
        out.write(_gather(paths, chunk, record))
        if ends_source:
            out.maybe_roll()
        if on_progress is not None:
            on_progress(f"{record} {wire}", sum(s.size for s in chunk))
    return out.finish()


def _stretches(paths: Sequence[Path], record: Record) -> list[_Stretch]:
    ranks: dict[str, int] = {}
    found = []
    columns = ["source_id"] if record == "source" else ["source_id", "line"]
    for at, path in enumerate(paths):
        before = 0
        with parquet_file(path) as reader:
            for group in range(reader.num_row_groups):
                table = reader.read_row_group(group, columns=columns)
                lines = table["line"] if "line" in columns else None
                per_row = _row_bytes(reader, group)
                step = max(1, _CHUNK_BYTES // per_row)
                start = 0
                for source, end in _runs(table["source_id"]):
                    rank = ranks.setdefault(source, len(ranks))
                    for low in range(start, end, step):
                        high = min(low + step, end)
                        line = (lines[low].as_py() or 0) if lines is not None else 0
                        found.append(_Stretch(at, group, before, low, high, rank, line, per_row * (high - low)))
                    start = end
                before += table.num_rows
    return found


def _runs(ids: pa.ChunkedArray) -> Iterator[tuple[str, int]]:
    """Each source of consecutive rows, and the row it ends before."""
    if len(ids):
        encoded = pc.run_end_encode(ids.combine_chunks())
        yield from zip(encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True)


def _kept(whole: _Stretch, keep: set[tuple[int, int]]) -> Iterator[_Stretch]:
    """The rows of a stretch whose place in its file is in `keep`."""
    size = whole.size // (whole.stop - whole.start) + 1
    for row in range(whole.start, whole.stop):
        if (whole.file, whole.before + row) in keep:
            yield replace(whole, start=row, stop=row + 1, size=size)


def _chunks(stretches: Sequence[_Stretch]) -> Iterator[tuple[list[_Stretch], bool]]:
    """Stretches in order, in pieces that fit in memory; and whether the piece ends where a source ends."""
    chunk: list[_Stretch] = []
    size = 0
    for at, stretch in enumerate(stretches):
        chunk.append(stretch)
        size += stretch.size
        if size >= _CHUNK_BYTES or at + 1 == len(stretches):
            yield chunk, at + 1 == len(stretches) or stretches[at + 1].rank != stretch.rank
            chunk, size = [], 0


def _gather(paths: Sequence[Path], chunk: Sequence[_Stretch], record: Record) -> pa.Table:
    """The rows of a chunk, in its order; each row group it touches is decoded once, in small batches."""
    wanted: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    place = 0
    for s in chunk:
        wanted[s.file, s.group].append((s.start, s.stop, place))
        place += s.stop - s.start
    batches: list[pa.RecordBatch] = []
    places: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    for (file, group), ranges in wanted.items():
        ranges.sort()
        base, first = 0, 0
        with parquet_file(paths[file]) as reader:
            for batch in reader.iter_batches(batch_rows(reader, group), row_groups=[group]):
                end = base + batch.num_rows
                rows = []
                while first < len(ranges) and ranges[first][0] < end:
                    start, stop, at = ranges[first]
                    low, high = max(start, base), min(stop, end)
                    rows.append(np.arange(low - base, high - base))
                    places.append(np.arange(at + low - start, at + high - start))
                    if stop > end:
                        break
                    first += 1
                if rows:
                    here = np.concatenate(rows)
                    batches.append(batch if len(here) == batch.num_rows else batch.take(pa.array(here)))
                base = end
                if first == len(ranges):
                    break
    table = pa.Table.from_batches(batches, arrow_schema(record))
    order = np.concatenate(places)
    return table if bool((np.diff(order) > 0).all()) else table.combine_chunks().take(pa.array(np.argsort(order)))


def batch_rows(reader: pq.ParquetFile, group: int) -> int:
    """How many rows of a row group may be decoded at once."""
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // _row_bytes(reader, group)))


def _row_bytes(reader: pq.ParquetFile, group: int) -> int:
    """About what a row takes in memory: its encoded bytes, and for each column an offset or a number."""
    metadata = reader.metadata.row_group(group)
    return int(metadata.total_byte_size / max(1, metadata.num_rows)) + 6 * int(metadata.num_columns)


class _Output:
    """Writes row groups of about 64 k rows into files of about the target size."""

    def __init__(self, root: Path, record: Record, wire: str, target: int, ingest_id: str, number: int) -> None:
        self.root, self.record, self.wire, self.target = root, record, wire, target
        self.ingest_id, self.number = ingest_id, number
        self.key: str | None = None
        self.done: list[str] = []
        self._writer: pq.ParquetWriter | None = None
        self._relative = ""
        self._held: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        """Takes rows; they are on disk after `finish`."""
        self._held.append(table)
        if sum(t.num_rows for t in self._held) >= ROW_GROUP_ROWS or sum(t.nbytes for t in self._held) >= _CHUNK_BYTES:
            self._flush()

    def maybe_roll(self) -> None:
        """Begins the next file if this one is large enough. Called where a source ends."""
        if self._writer is None:
            return
        if lakefiles.bytes_so_far(self.root / self._relative, self._writer) >= self.target:
            self._close()

    def finish(self) -> list[WrittenFile]:
        """Closes the last file and describes them all."""
        self._close()
        return [lakefiles.describe(self.root, relative) for relative in self.done]

    def _flush(self) -> None:
        if not self._held:
            return
        table = pa.concat_tables(self._held)
        self._held = []
        groups = max(1, round(table.num_rows / ROW_GROUP_ROWS))
        size = -(-table.num_rows // groups)
        if self._writer is None:
            key = self.key or self.ingest_id
            self._relative = lakefiles.data_path(self.record, self.wire, self.ingest_id, self.number, in_place_of=key)
            self.number += 1
            filters = bloom_filters(table.slice(0, size), LOOKED_UP, FALSE_SHARE) if self.record == "event" else None
            path = self.root / self._relative
            self._writer = lakefiles.parquet_writer(path, self.record, bloom_filter_options=filters)
        self._writer.write_table(_by_kind(table, size) if self.record == "event" else table, row_group_size=size)

    def _close(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self.done.append(self._relative)
            self._writer, self.key = None, None


def bloom_filters(table: pa.Table, columns: Iterable[str], false_share: float) -> dict[str, dict[str, float]]:
    """Pyarrow's options for Bloom filters of row groups like this one, as large as the values of each column need.

    false_share: of the row groups that lack a value, how many may be read for it all the same, between 0 and 1.
    """
    many = {name: pc.count_distinct(table[name], mode="only_valid").as_py() for name in columns}
    return {name: {"ndv": distinct, "fpp": false_share} for name, distinct in many.items() if distinct}


def _by_kind(table: pa.Table, group_rows: int) -> pa.Table:
    """The rows of each row group by kind, then by source in the order of the table, line and part."""
    sources = pc.dictionary_encode(table["source_id"].combine_chunks()).indices.to_numpy()
    numbers = (table[name].to_numpy() for name in ("part", "line"))
    order = np.lexsort((*numbers, sources))
    kinds = pc.rank(table["kind"].combine_chunks(), tiebreaker="dense").to_numpy()
    groups = np.arange(table.num_rows) // group_rows
    return table.take(pa.array(order[np.lexsort((np.arange(table.num_rows), kinds[order], groups))]))


def _source_rows(root: Path, files: Iterable[WrittenFile]) -> Iterator[tuple[int, WrittenFile, pa.Table]]:
    for at, file in enumerate(files):
        with parquet_file(root / file.relative) as reader:
            yield at, file, reader.read(columns=["source_id", "revision"])


def _newest(store: Store) -> dict[str, tuple[int, str, int]]:
    """Per source over the whole lake: revision, file and row of the latest; of equal revisions the later row."""
    newest: dict[str, tuple[int, str, int]] = {}
    for _, file, table in _source_rows(store.root, [f for f in store.all_files if f.record == "source"]):
        for row, (source, revision) in enumerate(zip(*(c.to_pylist() for c in table.columns), strict=True)):
            if source not in newest or revision >= newest[source][0]:
                newest[source] = (revision, file.relative, row)
    return newest


def _latest_revisions(store: Store) -> dict[str, int]:
    """Per wire, how many ledger rows would stay."""
    counts: dict[str, int] = defaultdict(int)
    wires = {file.relative: file.wire for file in store.all_files}
    for _, relative, _ in _newest(store).values():
        counts[wires[relative]] += 1
    return counts


def _latest_rows(store: Store, files: Sequence[WrittenFile]) -> set[tuple[int, int]]:
    """The ledger rows to keep, as (index of the file, row in it)."""
    places = {file.relative: at for at, file in enumerate(files)}
    return {(places[relative], row) for _, relative, row in _newest(store).values() if relative in places}
