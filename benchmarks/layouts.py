"""How event files may be written, and a lake's events written so: the base, and layouts that change one thing of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analytics import lakefiles  # noqa: E402 (this checkout, whatever is installed)
from analytics.compaction import LOOKED_UP, TARGET_BYTES, bloom_filters  # noqa: E402
from analytics.schema import arrow_schema  # noqa: E402

BASE = "base"
SCHEMA = arrow_schema("event")
PLACE = ("source_id", "line", "part")
MOST_BYTES = 1 << 30  # of a row group in memory


@dataclass(frozen=True, slots=True)
class Layout:
    """How event files may be written. What is not said is as in the base.

    filters, false_share: the columns with Bloom filters. options: of the Parquet writer. is_apart: payloads stand in
    files of their own.
    """

    name: str
    group_rows: int = lakefiles.ROW_GROUP_ROWS
    file_bytes: int = TARGET_BYTES
    by_kind: bool = True
    filters: tuple[str, ...] = ()
    false_share: float = 0.05
    options: Mapping[str, Any] = field(default_factory=dict)
    is_apart: bool = False


LAYOUTS = (
    Layout(BASE),
    Layout("row groups of 16 k", group_rows=16_384),
    Layout("row groups of 256 k", group_rows=262_144),
    Layout("row groups of 1 M", group_rows=1_048_576),
    Layout("files of 8 MB", file_bytes=8 << 20),
    Layout("files of 32 MB", file_bytes=32 << 20),
    Layout("files of 1024 MB", file_bytes=1 << 30),
    Layout("order: source, line", by_kind=False),
    Layout("bloom: call_id", filters=("call_id",)),
    Layout("bloom: request_id, usage_key", filters=("request_id", "usage_key")),
    Layout("bloom: run_id, source_id", filters=("run_id", "source_id")),
    Layout("bloom: all five, 10 % false", filters=LOOKED_UP, false_share=0.1),
    Layout("bloom: all five, 5 % false", filters=LOOKED_UP),
    Layout("bloom: all five, 1 % false", filters=LOOKED_UP, false_share=0.01),
    Layout("statistics: source_id, run_id, ts", options={"write_statistics": ["source_id", "run_id", "ts"]}),
    Layout("page index", options={"write_page_index": True}),
    Layout("page index, pages of 4 k rows", options={"write_page_index": True, "max_rows_per_page": 4096}),
    Layout("payload: zstd 1", options={"compression_level": dict.fromkeys(SCHEMA.names, 3) | {"payload": 1}}),
    Layout("payload: zstd 6", options={"compression_level": dict.fromkeys(SCHEMA.names, 3) | {"payload": 6}}),
    Layout("payload apart", is_apart=True),
)


class Files:
    """Parquet files of one layout, each begun when the one before it is large enough."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self.folder, self.layout, self.paths = folder, layout, list[Path]()
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """One row group."""
        if self._writer is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.paths.append(self.folder / f"{len(self.paths):05d}.parquet")
            filters = bloom_filters(table, self.layout.filters, self.layout.false_share)
            options = lakefiles.writer_options(table.schema, 3) | self.layout.options
            self._writer = pq.ParquetWriter(
                self.paths[-1], table.schema, **options, bloom_filter_options=filters or None
            )
        self._writer.write_table(table, row_group_size=1 << 30)
        if self.paths[-1].stat().st_size >= self.layout.file_bytes:
            self.close()

    def close(self) -> None:
        """No more rows, or those that follow into another file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def in_order(table: pa.Table, ranks: Mapping[str, int], *, by_kind: bool) -> pa.Table:
    """The rows by source, line and part; by_kind: those of each kind together."""
    sources = table["source_id"].combine_chunks().dictionary_encode()
    rank = np.array([ranks[name] for name in sources.dictionary.to_pylist()])[sources.indices.to_numpy()]
    keys = [table["part"].to_numpy(), table["line"].to_numpy(), rank]
    if by_kind:
        kinds = pc.fill_null(table["kind"].combine_chunks(), "").dictionary_encode()
        keys.append(np.argsort(np.argsort(kinds.dictionary.to_pylist()))[kinds.indices.to_numpy()])
    return table.take(pa.array(np.lexsort(keys)))


def each_row_group(paths: Sequence[Path], columns: Sequence[str]) -> Iterator[pa.Table]:
    """These columns, row group after row group."""
    for path in paths:
        with pq.ParquetFile(path) as reader:
            for group in range(reader.num_row_groups):
                yield reader.read_row_group(group, columns).select(columns)


def ranks_of(paths: Sequence[Path]) -> dict[str, int]:
    """The place of each source in the lake's order: a row group, sorted by kind, holds a stretch of that order."""
    spans: dict[str, tuple[int, int]] = {}
    for place, table in enumerate(each_row_group(paths, ["source_id"])):
        for source in table["source_id"].unique().to_pylist():
            spans[source] = (spans.get(source, (place,))[0], place)
    return {source: rank for rank, source in enumerate(sorted(spans, key=lambda source: spans[source]))}


def row_groups(paths: Sequence[Path], ranks: Mapping[str, int], rows: int) -> Iterator[pa.Table]:
    """The rows of a wire by source, line and part, in tables of about so many rows."""
    total = sum(pq.read_metadata(path).num_rows for path in paths)
    size = -(-total // max(1, round(total / rows)))
    held: list[pa.Table] = []
    for unsorted in each_row_group(paths, SCHEMA.names):
        table = in_order(unsorted, ranks, by_kind=False)
        while table.num_rows:
            free = size - sum(one.num_rows for one in held)
            held.append(table.slice(0, free))
            table = table.slice(free)
            if held[-1].num_rows == free or sum(one.nbytes for one in held) >= MOST_BYTES:
                yield pa.concat_tables(held).combine_chunks()
                held = []
    if held:
        yield pa.concat_tables(held).combine_chunks()


def write(layout: Layout, wires: Mapping[str, Sequence[Path]], folder: Path) -> float:
    """Writes the events in a layout, and says the CPU seconds that took without reading them."""
    cpu = 0.0
    for wire, paths in wires.items():
        ranks = ranks_of(paths)
        events = Files(folder / "events" / f"wire={wire}", layout)
        payloads = Files(folder / "payloads" / wire, replace(layout, filters=()))
        for table in row_groups(paths, ranks, layout.group_rows):
            began = time.process_time()
            rest = table
            if layout.is_apart:
                payloads.write(table.select([*PLACE, "payload"]).filter(table["payload"].is_valid()))
                rest = table.drop_columns("payload")
            events.write(in_order(rest, ranks, by_kind=True) if layout.by_kind else rest)
            cpu += time.process_time() - began
        began = time.process_time()
        events.close()
        payloads.close()
        cpu += time.process_time() - began
    return cpu
