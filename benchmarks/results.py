"""The figures of `benchmarks/run` as JSON, and as Markdown tables between the marks of RESULTS.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Figures = dict[str, Any]  # machine, how, ingest (rows), measures (rows by name), scale (rows)

INGEST = (
    "corpus", "program", "wall s", "CPU s", "CPU s without start-up", "peak MiB", "MB/s per core", "events/s",
    "MB on disk", "runlake's CPU / its", "runlake's disk / its", "what happened",
)  # fmt: skip
# what must hold: name, the target in words, the part of benchmarks/run that measures it
TARGETS = (
    ("ingest CPU against duckdb's one-liner", "≤ 0.40", "ingest"),
    ("ingest CPU against polars with an explicit envelope schema per wire", "≤ 1.0", "ingest"),
    ("ingest CPU against the floor", "≤ 1.8", "ingest"),
    ("wall time with 2 workers against 1", "≤ 0.60", "ingest"),
    ("peak memory, 1 worker: all wires mixed, and each alone", "< 400 MiB", "ingest"),
    ("peak memory, 1 worker: many small files", "< 400 MiB", "memory"),
    ("peak memory, 1 worker: lines of up to 200 kB", "< 400 MiB", "memory"),
    ("peak memory, 1 worker: one big file", "< 400 MiB", "big"),
    ("0.2 % bad lines spread evenly, CPU against the clean corpus", "≤ 1.25", "bad"),
    ("second ingest of unchanged files, beyond start-up", "< 1 s", "unchanged"),
    ("append of one line to one of them, ingested, beyond start-up", "< 1 s", "unchanged"),
    ("a listing of many files with nothing new, whole process", "< 10 s", "listing"),
    ("bytes on disk against zstd -3 of the raw files, after ingest", "≤ 1.2", "bytes"),
    ("bytes on disk against zstd -3 of the raw files, after compact", "≤ 1.2", "bytes"),
    ("runlake report on the sample lake, whole process", "< 0.6 s", "report"),
    ("headline reports at 10 M events, the slowest, whole process", "< 1 s", "scale"),
    ("headline reports, all: time at the largest lake against the smallest, per event", "≤ 1.3", "scale"),
)
TABLES = ("machine", "what must hold", "ingest", "reports against size")


def load(path: Path) -> Figures:
    """Figures as they were left; none if the file is not there."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def save(path: Path, figures: Figures) -> None:
    path.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def holds(value: float, target: str) -> bool:
    """Whether a value meets a target such as `≤ 0.40` or `< 1 s`."""
    sign, limit = target.split()[:2]
    return value <= float(limit) if sign == "≤" else value < float(limit)


def table(names: tuple[str, ...], rows: list[list[str]], left: int = 1) -> str:
    """A Markdown table whose first `left` columns are text, the rest numbers."""
    rule = ["---" if place < left else "---:" for place in range(len(names))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [list(names), rule, *rows])


def number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def ingest_table(rows: list[Row]) -> str:
    """One row per corpus and program; ratios are runlake's figure over the program's."""
    ours = {row["corpus"]: row for row in rows if row["program"] == "runlake"}
    cells = []
    for row in rows:
        mine, is_ours = ours[row["corpus"]], row["program"].startswith("runlake")
        cpu, out = row.get("net_cpu"), row.get("out_bytes")
        cells.append([
            row["corpus"], row["program"], number(row.get("wall")), number(row.get("cpu")), number(cpu),
            number(row.get("peak_mib"), 0), number(row["bytes"] / 1e6 / cpu, 0) if cpu else "",
            number(row["events"] / cpu, 0) if cpu else "", number(out / 1e6, 1) if out else "",
            number(mine["net_cpu"] / cpu) if cpu and not is_ours else "",
            number(mine["out_bytes"] / out) if out and not is_ours else "", row.get("note", ""),
        ])  # fmt: skip
    return table(INGEST, cells, 2)


def targets_table(measures: dict[str, Row]) -> str:
    """Each measure beside its target; one that was not taken says how to take it."""
    cells = []
    for name, target, part in TARGETS:
        row = measures.get(name)
        if row is None:
            cells.append([name, "not measured", f"`--only {part}`", target, ""])
            continue
        unit = {"s": " s", "MiB": " MiB"}.get(target.split()[-1], "")
        met = "yes" if holds(row["value"], target) else "**no**"
        cells.append([name, row["how"], number(row["value"], 0 if unit == " MiB" else 2) + unit, target, met])
    return table(("measure", "measured on", "value", "target", "met"), cells, 2)


def scale_table(rows: list[Row]) -> str:
    """One row per report, a column per size of the lake."""
    if not rows:
        return "Not measured: `--only scale`."
    sizes = [f"{row['events'] / 1e6:,.2f} M events" for row in rows]
    names = list(rows[0]["reports"])
    cells = [[name, *(number(row["reports"][name]) for row in rows)] for name in names]
    cells += [["lake, MB", *(number(row["lake_bytes"] / 1e6, 0) for row in rows)]]
    cells += [["peak MiB of the largest", *(number(row["peak_mib"], 0) for row in rows)]]
    return table(("report, wall s of the whole process", *sizes), cells)


def tables(figures: Figures) -> dict[str, str]:
    """The generated parts by name."""
    told = figures["machine"]
    machine = "\n".join(f"* {name}: {value}" for name, value in (told | {"how": figures["how"]}).items())
    return {
        "machine": machine,
        "what must hold": targets_table(figures.get("measures", {})),
        "ingest": ingest_table(figures["ingest"]) if figures.get("ingest") else "Not measured: `--only ingest`.",
        "reports against size": scale_table(figures.get("scale", [])),
    }


def write(path: Path, figures: Figures) -> None:
    """Put the tables between the marks of the file, whose other words stay; a new file gets the tables alone."""
    if path.exists():
        text = path.read_text(encoding="utf-8")
    else:
        text = "# Measured\n" + "".join(f"\n## {name}\n\n<!-- generated: {name} -->\n<!-- end -->\n" for name in TABLES)
    for name, body in tables(figures).items():
        begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
        before, mark, rest = text.partition(begin)
        if not mark:
            raise SystemExit(f"{path} has no line {begin.strip()!r} for the table {name!r} to stand under")
        text = f"{before}{begin}\n{body}\n\n{end}{rest.partition(end)[2]}"
    path.write_text(text, encoding="utf-8")
