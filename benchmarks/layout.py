"""What a lake's event files cost in other layouts: bytes, CPU to write, reports, look-ups, whole sources.

    python benchmarks/layout.py LAKE [--repeat 3] [--only WORD…] [--threads 2]

LAKE is a lake after `runlake compact` (of a corpus of corpora.py, or your own). Its events are written anew in each
layout, into a temporary folder as large as LAKE, and asked the same questions there; the folder is then deleted. Layouts
take turns, --repeat times, so that a noisy machine harms all alike, and the least of each figure counts. --only: the
layouts that have one of these words in their name, beside today's.

The first row is today's layout in its own units, the other rows are ratios to it. Written: CPU of sorting, encoding and
compressing, reading aside. Asked: DuckDB, a new connection for each question, warm page cache, kept facts aside. Reports:
run_metrics, overview, token_usage, unfinished and denials, one after the other. The others are means over one look-up
for each wire: a run as `runlake show` reads it, payload included; all columns of the rows of a call_id, of a request_id
or usage_key; a source as `runlake export --raw` reads it. MB: what DuckDB read.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analytics import lakefiles  # noqa: E402 (this checkout, whatever is installed)
from analytics.catalog import built_in, select  # noqa: E402
from analytics.compaction import TARGET_BYTES, bloom_filters  # noqa: E402
from analytics.lake import Store  # noqa: E402
from analytics.relations import Relation, closure, composed, relations, words_of  # noqa: E402
from analytics.schema import arrow_schema  # noqa: E402
from analytics.sqlfiles import quoted  # noqa: E402

SCHEMA = arrow_schema("event")
PLACE = ("source_id", "line", "part")
IDS = ("call_id", "request_id", "usage_key")
REPORTS = ("overview", "token_usage", "unfinished", "denials")
MOST_BYTES = 1 << 30  # of a row group in memory

Options = Callable[[pa.Table], dict[str, Any]]  # of the writer, besides today's; the table: a file's first row group


def bloom(*columns: str, fpp: float = 0.05) -> Options:
    """Bloom filters for these columns, as large as a row group's values need."""
    return lambda table: {"bloom_filter_options": bloom_filters(table, columns, fpp)}


def always(**options: Any) -> Options:
    """The same options for each file."""
    return lambda _: options


@dataclass(frozen=True, slots=True)
class Layout:
    """How event files may be written; what is not said is as today. `is_apart`: payloads in files of their own."""

    name: str
    group_rows: int = lakefiles.ROW_GROUP_ROWS
    file_bytes: int = TARGET_BYTES
    by_kind: bool = True
    options: Options = always()
    is_apart: bool = False


LAYOUTS = (
    Layout("today", options=always(bloom_filter_options=None)),
    Layout("row groups of 16 k", group_rows=16_384),
    Layout("row groups of 256 k", group_rows=262_144),
    Layout("row groups of 1 M", group_rows=1_048_576),
    Layout("files of 8 MB", file_bytes=8 << 20),
    Layout("files of 32 MB", file_bytes=32 << 20),
    Layout("files of 1024 MB", file_bytes=1 << 30),
    Layout("order: source, line", by_kind=False),
    Layout("bloom: call_id", options=bloom("call_id")),
    Layout("bloom: request_id, usage_key", options=bloom("request_id", "usage_key")),
    Layout("bloom: run_id, source_id", options=bloom("run_id", "source_id")),
    Layout("bloom: all five, 10 % false", options=bloom("run_id", "source_id", *IDS, fpp=0.1)),
    Layout("bloom: all five, 5 % false", options=bloom("run_id", "source_id", *IDS)),
    Layout("bloom: all five, 1 % false", options=bloom("run_id", "source_id", *IDS, fpp=0.01)),
    Layout("statistics: source_id, run_id, ts", options=always(write_statistics=["source_id", "run_id", "ts"])),
    Layout("page index", options=always(write_page_index=True)),
    Layout("page index, pages of 4 k rows", options=always(write_page_index=True, max_rows_per_page=4096)),
    Layout("payload: zstd 1", options=always(compression_level={n: 1 if n == "payload" else 3 for n in SCHEMA.names})),
    Layout("payload: zstd 6", options=always(compression_level={n: 6 if n == "payload" else 3 for n in SCHEMA.names})),
    Layout("payload apart", is_apart=True),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A query, its DuckDB variables, and the columns of the table it counts to. `payload`: it reads payloads."""

    group: str
    sql: str
    variables: tuple[tuple[str, str], ...] = ()
    payload: bool = True


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
            options = lakefiles.writer_options(table.schema, 3) | self.layout.options(table)
            self._writer = pq.ParquetWriter(self.paths[-1], table.schema, **options)
        self._writer.write_table(table, row_group_size=1 << 30)
        if self.paths[-1].stat().st_size >= self.layout.file_bytes:
            self.close()

    def close(self) -> None:
        """No more rows, or those that follow into another file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def in_order(table: pa.Table, ranks: dict[str, int], *, by_kind: bool) -> pa.Table:
    """The rows by source, line and part; by_kind: those of each kind together."""
    sources = table["source_id"].combine_chunks().dictionary_encode()
    rank = np.array([ranks[name] for name in sources.dictionary.to_pylist()])[sources.indices.to_numpy()]
    keys = [table["part"].to_numpy(), table["line"].to_numpy(), rank]
    if by_kind:
        kinds = table["kind"].combine_chunks().dictionary_encode()
        keys.append(np.argsort(np.argsort(kinds.dictionary.to_pylist()))[kinds.indices.to_numpy()])
    return table.take(pa.array(np.lexsort(keys)))


def ranks_of(paths: Sequence[Path]) -> dict[str, int]:
    """The place of each source in the lake's order: a row group, sorted by kind, holds a stretch of that order."""
    spans: dict[str, tuple[int, int]] = {}
    at = count()
    for path in paths:
        with pq.ParquetFile(path) as reader:
            for group in range(reader.num_row_groups):
                place = next(at)
                for source in reader.read_row_group(group, ["source_id"])["source_id"].unique().to_pylist():
                    spans[source] = (spans.get(source, (place,))[0], place)
    return {source: rank for rank, source in enumerate(sorted(spans, key=lambda source: spans[source]))}


def row_groups(paths: Sequence[Path], ranks: dict[str, int], rows: int) -> Iterator[pa.Table]:
    """The rows of a wire by source, line and part, in tables of about so many rows."""
    total = sum(pq.read_metadata(path).num_rows for path in paths)
    size = -(-total // max(1, round(total / rows)))
    held: list[pa.Table] = []
    for path in paths:
        with pq.ParquetFile(path) as reader:
            for group in range(reader.num_row_groups):
                table = in_order(reader.read_row_group(group).select(SCHEMA.names), ranks, by_kind=False)
                while table.num_rows:
                    free = size - sum(one.num_rows for one in held)
                    held.append(table.slice(0, free))
                    table = table.slice(free)
                    if held[-1].num_rows == free or sum(one.nbytes for one in held) >= MOST_BYTES:
                        yield pa.concat_tables(held).combine_chunks()
                        held = []
    if held:
        yield pa.concat_tables(held).combine_chunks()


def write(layout: Layout, wires: dict[str, list[Path]], ranks: dict[str, dict[str, int]], folder: Path) -> float:
    """Writes the events in a layout, and says the CPU seconds that took without reading them."""
    cpu = 0.0
    for wire, paths in wires.items():
        events = Files(folder / "events" / f"wire={wire}", layout)
        payloads = Files(folder / "payloads" / wire, layout)
        for table in row_groups(paths, ranks[wire], layout.group_rows):
            began = time.process_time()
            if layout.is_apart:
                apart = table.select([*PLACE, "payload"])
                payloads.write(apart.filter(apart["payload"].is_valid()))
                events.write(in_order(table.drop_columns("payload"), ranks[wire], by_kind=layout.by_kind))
            else:
                events.write(in_order(table, ranks[wire], by_kind=layout.by_kind) if layout.by_kind else table)
            cpu += time.process_time() - began
        began = time.process_time()
        events.close()
        payloads.close()
        cpu += time.process_time() - began
    return cpu


def connect(threads: int) -> duckdb.DuckDBPyConnection:
    """An engine as runlake uses it."""
    engine = duckdb.connect(config={"threads": threads})
    engine.execute("SET GLOBAL TimeZone = 'UTC'")
    engine.execute("SET GLOBAL parquet_metadata_cache = true")
    return engine


def listed(paths: Sequence[str | Path]) -> str:
    """A list of files as SQL."""
    return "[" + ", ".join(quoted(str(path)) for path in paths) + "]"


def questions(store: Store) -> list[Question]:
    """What is asked of each layout."""
    files = f"read_parquet({listed(store.files('event'))}, hive_partitioning = true)"
    asked = [Question("reports", "FROM run_metrics", payload=False)]
    asked += [Question("reports", select(built_in()[name]), payload=False) for name in REPORTS]
    engine = connect(2)

    def one_a_wire(column: str) -> list[str]:
        query = f"SELECT arg_min({column}, hash({column})) FROM {files} WHERE {column} IS NOT NULL GROUP BY wire"
        return sorted(row[0] for row in engine.execute(query).fetchall())

    for run in one_a_wire("run_id"):
        sql = f"FROM transcript WHERE run_id = {quoted(run)} ORDER BY position"
        asked.append(Question("run", sql, (("only_run", run),)))
    for column in IDS:
        group = "call_id" if column == "call_id" else "other id"
        asked += [
            Question(group, f"FROM stored_events WHERE {column} = {quoted(value)}") for value in one_a_wire(column)
        ]
    for source in one_a_wire("source_id"):
        lines = f"FROM stored_events WHERE source_id = {quoted(source)} AND payload IS NOT NULL"
        asked.append(Question("source", f"SELECT line, byte_offset, payload, raw {lines} ORDER BY line, byte_offset"))
    return asked


def apart(query: str, *, payload: bool) -> str:
    """stored_events where payloads stand in files of their own; joined only where they are wanted."""
    if not payload:
        return query.replace("attributes, payload, raw", "attributes, NULL::VARCHAR AS payload, raw")
    join = f" AS e LEFT JOIN read_parquet(getvariable('payload_files')) AS p USING ({', '.join(PLACE)})"
    return query.rstrip().rstrip(";") + join


def text_of(question: Question, layout: Layout) -> str:
    """The query with all it builds on before it."""
    needed = closure(words_of(question.sql))
    if layout.is_apart:
        stored = relations()["stored_events"]
        query = apart(str(stored.query), payload=question.payload)
        needed["stored_events"] = Relation(stored.text, query, stored.builds_on)
    text = composed(question.sql, needed)
    if text is None:
        raise SystemExit(f"{question.sql} cannot be asked.")
    return text


Cost = dict[tuple[str, str], float]  # (group, unit) → sum over its questions


def ask(asked: Sequence[Question], layout: Layout, folder: Path, store: Store, threads: int) -> Cost:
    """What the questions cost in CPU seconds, wall seconds and MB read."""
    files = {
        "event_files": sorted(map(str, (folder / "events").rglob("*.parquet"))),
        "payload_files": sorted(map(str, (folder / "payloads").rglob("*.parquet"))),
        "refusal_files": store.files("refusal"), "source_files": store.files("source"),
    }  # fmt: skip
    cost: Cost = defaultdict(float)
    for question in asked:
        engine = connect(threads)
        for name, paths in files.items():
            engine.execute(f"SET VARIABLE {name} = {listed(paths)}")
        for name, value in question.variables:
            engine.execute(f"SET VARIABLE {name} = {quoted(value)}")
        engine.execute("PRAGMA enable_profiling = 'no_output'")
        text = text_of(question, layout)
        wall, cpu = time.perf_counter(), time.process_time()
        rows = engine.sql(text).to_arrow_table().num_rows
        cost[question.group, "CPU"] += time.process_time() - cpu
        cost[question.group, "wall"] += time.perf_counter() - wall
        cost[question.group, "MB"] += json.loads(engine.get_profiling_information("json"))["io"]["total_bytes_read"] / 1e6
        cost[question.group, "rows"] += rows
        engine.close()
    return cost


def measured(layout: Layout, wires: dict[str, list[Path]], ranks: dict[str, dict[str, int]], look: Any) -> Cost:
    """One turn of a layout: written, asked, deleted."""
    with tempfile.TemporaryDirectory(prefix="runlake-layout-") as temporary:
        folder = Path(temporary)
        cpu = write(layout, wires, ranks, folder)
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
        return look(layout=layout, folder=folder) | {("", "MB"): size / 1e6, ("written", "CPU"): cpu}


COLUMNS = (("", "MB"), ("written", "CPU"), ("reports", "CPU"), ("reports", "wall")) + tuple(
    (group, unit) for group in ("run", "call_id", "other id", "source") for unit in ("CPU", "wall", "MB")
)


def table(best: dict[str, Cost], asked: Sequence[Question]) -> Iterator[str]:
    """The Markdown table: today's layout in its units, the others as ratios to it."""
    heads = [f"{group} {unit}".strip() for group, unit in COLUMNS]
    yield f"| layout | {' | '.join(heads)} |"
    yield "| --- |" + " ---: |" * len(heads)
    today = best["today"]
    cells = []
    for group, unit in COLUMNS:
        value = today[group, unit]
        if group not in ("", "written", "reports"):
            value /= sum(question.group == group for question in asked)
            cells.append(f"{value:.2f}" if unit == "MB" else f"{value * 1000:.1f} ms")
        else:
            cells.append(f"{value:.1f}" if unit == "MB" else f"{value:.2f} s")
    yield f"| today | {' | '.join(cells)} |"
    for name, cost in best.items():
        if name != "today":
            ratios = [cost[key] / today[key] if today[key] else float("nan") for key in COLUMNS]
            cells = [f"{ratio:.3f}" if key == ("", "MB") else f"{ratio:.2f}" for key, ratio in zip(COLUMNS, ratios)]
            yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lake", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[""])
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    store = Store.open(args.lake)
    wires: dict[str, list[Path]] = defaultdict(list)
    for file in store.all_files:
        if file.record == "event" and file.rows:
            wires[file.wire].append(store.root / file.relative)
    if not wires:
        parser.error(f"{args.lake} holds no events")
    ranks = {wire: ranks_of(paths) for wire, paths in wires.items()}
    asked = questions(store)
    chosen = [one for one in LAYOUTS if one.name == "today" or any(word in one.name for word in args.only)]
    look = partial(ask, asked, store=store, threads=args.threads)
    best: dict[str, Cost] = {}
    for turn in range(args.repeat):
        for layout in chosen:
            cost = measured(layout, wires, ranks, look)
            known = best.get(layout.name, cost)
            best[layout.name] = {key: min(value, known[key]) for key, value in cost.items()}
            print(f"turn {turn + 1}: {layout.name}", file=sys.stderr)
    if len({tuple(value for key, value in cost.items() if key[1] == "rows") for cost in best.values()}) > 1:
        raise SystemExit("The layouts do not answer the same number of rows.")
    print(*table(best, asked), sep="\n")


if __name__ == "__main__":
    main()
