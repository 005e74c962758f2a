"""What a lake's event files cost in other layouts: bytes, CPU to write, reports, look-ups, whole sources.

    python benchmarks/layout.py LAKE [--repeat 3] [--only WORD…] [--threads 2]

LAKE is a lake after `runlake compact` (of a corpus of corpora.py, or your own). Its events are written anew in each
layout, into a temporary folder as large as LAKE, and asked the same questions there; the folder is then deleted.
Layouts take turns, --repeat times, so that a noisy machine harms all alike, and the least of each figure counts.
--only: the layouts that have one of these words in their name, beside the base.

The first row, the base, is the layout of `runlake compact` without its Bloom filters (row groups of 64 k, files of 256
MB, kind before source and line, zstd 3), in units; the other rows change one thing each and are ratios to it. Written:
CPU of sorting, encoding and compressing, reading aside. Asked: DuckDB, a new connection for each question, warm page
cache, kept facts aside. Reports: run_metrics, token_usage, unfinished and denials, one after the other. The others are
means over one look-up in every other wire. Steps: the texts of a run as `runlake show` asks for them; run, call,
request: all columns of the stored rows of a run_id, of a call_id, of a request_id or usage_key; source: its lines as
`runlake export --raw` reads them. MB: what DuckDB read.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from measuring import bytes_below

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
REPORTS = ("token_usage", "unfinished", "denials")
BASE = "base"
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


ALL_IDS = ("run_id", "source_id", *IDS)
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
    Layout("bloom: all five, 10 % false", filters=ALL_IDS, false_share=0.1),
    Layout("bloom: all five, 5 % false", filters=ALL_IDS),
    Layout("bloom: all five, 1 % false", filters=ALL_IDS, false_share=0.01),
    Layout("statistics: source_id, run_id, ts", options={"write_statistics": ["source_id", "run_id", "ts"]}),
    Layout("page index", options={"write_page_index": True}),
    Layout("page index, pages of 4 k rows", options={"write_page_index": True, "max_rows_per_page": 4096}),
    Layout("payload: zstd 1", options={"compression_level": dict.fromkeys(SCHEMA.names, 3) | {"payload": 1}}),
    Layout("payload: zstd 6", options={"compression_level": dict.fromkeys(SCHEMA.names, 3) | {"payload": 6}}),
    Layout("payload apart", is_apart=True),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A query, its DuckDB variables, and the columns of the table it counts to."""

    group: str
    sql: str
    variables: tuple[tuple[str, str], ...] = ()


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


def row_groups(paths: Sequence[Path], ranks: Mapping[str, int], rows: int) -> Iterator[pa.Table]:
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
    asked = [Question("reports", "FROM run_metrics")]
    asked += [Question("reports", select(built_in()[name])) for name in REPORTS]
    engine = connect(2)

    def some(column: str) -> list[str]:
        query = f"SELECT arg_min({column}, hash({column})) FROM {files} WHERE {column} IS NOT NULL GROUP BY wire"
        return [value for (value,) in engine.execute(f"{query} ORDER BY wire").fetchall()][::2]

    for run in some("run_id"):
        sql = f"FROM transcript WHERE run_id = {quoted(run)} ORDER BY position"
        asked.append(Question("steps", sql, (("only_run", run),)))
    for column in ("run_id", *IDS):
        group = {"run_id": "run", "call_id": "call"}.get(column, "request")
        asked += [Question(group, f"FROM stored_events WHERE {column} = {quoted(value)}") for value in some(column)]
    for source in some("source_id"):
        lines = f"FROM stored_events WHERE source_id = {quoted(source)} AND (payload IS NOT NULL OR raw IS NOT NULL)"
        asked.append(Question("source", f"SELECT line, byte_offset, payload, raw {lines} ORDER BY line, byte_offset"))
    return asked


def text_of(question: Question, layout: Layout) -> str:
    """The query with all it builds on before it. Payloads that stand apart are joined for those who read them."""
    needed = closure(words_of(question.sql))
    if layout.is_apart:
        stored = relations()["stored_events"]
        query = str(stored.query).rstrip("; \n")
        if question.group == "reports":
            query = query.replace(" payload,", " NULL::VARCHAR AS payload,")
        else:
            query += f" AS e LEFT JOIN read_parquet(getvariable('payload_files')) AS p USING ({', '.join(PLACE)})"
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
        answer = engine.sql(text).to_arrow_table()
        cost[question.group, "CPU"] += time.process_time() - cpu
        cost[question.group, "wall"] += time.perf_counter() - wall
        told = json.loads(engine.get_profiling_information("json"))
        cost[question.group, "MB"] += told["io"]["total_bytes_read"] / 1e6
        cost[question.group, "rows"] += answer.num_rows
        if "payload" in answer.column_names:
            cost[question.group, "octets"] += pc.sum(pc.binary_length(answer["payload"])).as_py() or 0
        engine.close()
    return cost


LOOK_UPS = ("steps", "run", "call", "request", "source")
COLUMNS = (
    ("", "MB"), ("written", "CPU"), ("reports", "CPU"), ("reports", "wall"),
    *((group, unit) for group in LOOK_UPS for unit in ("CPU", "MB")),
)  # fmt: skip


def table(best: dict[str, Cost], asked: Sequence[Question]) -> Iterator[str]:
    """The Markdown table: the base in its units, the others as ratios to it."""
    heads = [f"{group} {unit}".strip() for group, unit in COLUMNS]
    yield f"| layout | {' | '.join(heads)} |"
    yield "| --- |" + " ---: |" * len(heads)
    base = best[BASE]
    cells = []
    for group, unit in COLUMNS:
        value = base[group, unit]
        if group in LOOK_UPS:
            value /= sum(question.group == group for question in asked)
            cells.append(f"{value:.2f}" if unit == "MB" else f"{value * 1000:.1f} ms")
        else:
            cells.append(f"{value:.1f}" if unit == "MB" else f"{value:.2f} s")
    yield f"| {BASE} | {' | '.join(cells)} |"
    for name, cost in best.items():
        if name != BASE:
            size, *ratios = [cost[key] / base[key] for key in COLUMNS]
            cells = [f"{size:.3f}", *(f"{ratio:.2f}" for ratio in ratios)]
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
    asked = questions(store)
    best: dict[str, Cost] = {}
    for turn in range(args.repeat):
        for layout in LAYOUTS:
            if layout.name != BASE and not any(word in layout.name for word in args.only):
                continue
            with tempfile.TemporaryDirectory(prefix="runlake-layout-") as temporary:
                folder = Path(temporary)
                written = write(layout, wires, folder)
                cost = ask(asked, layout, folder, store, args.threads)
                cost |= {("", "MB"): bytes_below(folder) / 1e6, ("written", "CPU"): written}
            known = best.get(layout.name, cost)
            best[layout.name] = {key: min(value, known[key]) for key, value in cost.items()}
            figures = {" ".join(key).strip(): round(value, 3) for key, value in cost.items()}
            print(f"turn {turn + 1}, {layout.name}: {json.dumps(figures)}", file=sys.stderr, flush=True)
    answers = {tuple(cost[key] for key in cost if key[1] in ("rows", "octets")) for cost in best.values()}
    if len(answers) > 1:
        raise SystemExit(f"The layouts do not give the same answers: {answers}")
    print(*table(best, asked), sep="\n")


if __name__ == "__main__":
    main()
