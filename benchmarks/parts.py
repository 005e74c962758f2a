"""What `benchmarks/run` measures, part by part. Each part makes what it reads, and gives rows and measures."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from bench import MIXED, RIVALS, Bench, events_of, status
from measuring import ROOT, RUNLAKE, Measured, best_of, bytes_below, run_process
from results import Row


def ingest(bench: Bench) -> None:
    """Runlake beside its rivals, per wire and all wires together; two workers beside one."""
    sizes = bench.sizes
    folder, made = bench.corpus("all", "--megabytes", sizes.wire_mb * len(bench.wires))
    by_wire = {row["wire"]: row for row in made}
    for wire in bench.wires:
        compare(bench, wire, folder / wire, [by_wire[wire]], wire)
    compare(bench, MIXED, folder, made, None)
    rows = {(row["corpus"], row["program"]): row for row in bench.ingest}
    # polars reads one wire at a time: its figures for all of them are the sums
    parts = [rows[wire, "polars, envelope schema"] for wire in bench.wires]
    sums = {
        name: sum(part[name] for part in parts)
        for name in ("cpu", "net_cpu", "wall", "bytes", "lines", "events", "out_bytes")
    }
    bench.ingest.append(
        parts[0] | sums | {
            "corpus": MIXED, "peak_mib": max(part["peak_mib"] for part in parts), "note": "sum of the wires",
        }
    )  # fmt: skip
    ours = rows[MIXED, "runlake"]
    size = f"{MIXED}, {ours['bytes'] / 1e6:,.0f} MB, {ours['bytes'] / ours['lines']:,.0f} bytes a line"
    for program, name in (
        ("duckdb's one-liner", "ingest CPU against duckdb's one-liner"),
        ("polars, envelope schema", "ingest CPU against polars with an explicit envelope schema per wire"),
        ("floor", "ingest CPU against the floor"),
    ):
        other = next(row for row in bench.ingest if (row["corpus"], row["program"]) == (MIXED, program))
        bench.tell(name, ours["net_cpu"] / other["net_cpu"], size)
    two = rows[MIXED, "runlake, 2 workers"]
    bench.tell("wall time with 2 workers against 1", two["wall"] / ours["wall"], f"{size}, start-up included")
    peak = max((row for row in bench.ingest if row["program"] == "runlake"), key=lambda row: row["peak_mib"])
    bench.tell("peak memory, 1 worker: all wires mixed, and each alone", peak["peak_mib"], f"most: {peak['corpus']}")
    shutil.rmtree(folder)


LONG = {"duckdb": "duckdb's one-liner", "polars": "polars, envelope schema", "floor": "floor"}


def compare(bench: Bench, corpus: str, folder: Path, made: list[Row], wire: str | None) -> None:
    """Runlake and its rivals in turn over one folder."""
    out: dict[str, int] = {}
    events = 0
    lake = bench.work / "lake"

    def ours(name: str, jobs: int) -> Measured:
        nonlocal events
        done = bench.runlake(folder, lake, jobs=jobs)
        out[name], events = bytes_below(lake), events_of(done)
        return done

    def theirs(name: str) -> Measured:
        done = bench.rival(name, folder, wire)
        out[name] = bytes_below(bench.rival_output)
        return done

    programs: dict[str, Callable[[], Measured]] = {"runlake": lambda: ours("runlake", 1)}
    if wire is None:
        programs["runlake, 2 workers"] = lambda: ours("runlake, 2 workers", 2)
    for name in RIVALS:
        if wire or name != "polars":
            programs[name] = lambda name=name: theirs(name)  # type: ignore[misc]
    for name, best in best_of(bench.sizes.repeat, programs).items():
        row = bench.row(corpus, name, best, made, out[name], events)
        bench.ingest.append(row | {"program": LONG.get(name, name)})
    if wire:
        tried = bench.rival("polars-inferring", folder, wire, may_fail=True)
        note = f"dies: {tried.error}" if tried.error else f"keeps {tried.stdout.strip()}"
        bench.ingest.append({"corpus": corpus, "program": "polars, inferring", "note": note.replace("|", "\\|")})
    print(f"  {corpus}", file=sys.stderr, flush=True)


def bad(bench: Bench) -> None:
    """A damaged line in every 500 against none."""
    clean, _ = bench.corpus("clean", "--megabytes", bench.sizes.bad_mb)
    damaged, made = bench.corpus("bad", "--megabytes", bench.sizes.bad_mb, "--bad", 0.002)
    found = best_of(
        bench.sizes.repeat,
        {
            "clean": lambda: bench.runlake(clean, bench.work / "lake"),
            "bad": lambda: bench.runlake(damaged, bench.work / "lake"),
        },
    )
    (told,) = json.loads(found["bad"].stdout)
    planted = sum(row["bad_lines"] for row in made)
    if told["refusals"] != planted:
        raise SystemExit(f"{planted} lines were damaged, but {told['refusals']} refused")
    events_of(found["clean"])
    start = bench.startup("runlake")
    ratio = (found["bad"].cpu_seconds - start) / (found["clean"].cpu_seconds - start)
    how = f"{MIXED}, {bench.sizes.bad_mb:,.0f} MB, {planted:,} bad lines, without start-up"
    bench.tell("0.2 % bad lines spread evenly, CPU against the clean corpus", ratio, how)
    shutil.rmtree(clean)
    shutil.rmtree(damaged)


def memory(bench: Bench) -> None:
    """Peak memory with one worker over many small files, and over long lines."""
    sizes = bench.sizes
    size = sizes.small_files * sizes.small_file_kb / 1e3
    folder, made = bench.corpus("small", "--megabytes", size, "--files", sizes.small_files)
    done = bench.runlake(folder, bench.work / "lake")
    files = sum(row["files"] for row in made)
    how = f"{files:,} files of {sizes.small_file_kb:,.0f} kB, all wires; {done.wall_seconds:,.1f} s"
    bench.tell("peak memory, 1 worker: many small files", done.peak_mib, how)
    shutil.rmtree(folder)
    folder, made = bench.corpus("long", "--megabytes", sizes.long_lines_mb, "--line-bytes", 40_000)
    done = bench.runlake(folder, bench.work / "lake")
    mean = sum(row["bytes"] for row in made) / sum(row["lines"] for row in made)
    how = f"{sizes.long_lines_mb:,.0f} MB, all wires, {mean / 1e3:,.0f} kB a line; {done.wall_seconds:,.1f} s"
    bench.tell("peak memory, 1 worker: lines of up to 200 kB", done.peak_mib, how)
    shutil.rmtree(folder)


def big(bench: Bench) -> None:
    """Peak memory with one worker over one file."""
    folder, (made,) = bench.corpus(
        "big", "--wire", "metaharness", "--megabytes", bench.sizes.big_gb * 1e3, "--files", 1
    )  # fmt: skip
    done = bench.runlake(folder, bench.work / "lake")
    how = f"metaharness, {made['bytes'] / 1e9:,.2f} GB, {made['lines']:,} lines; {done.wall_seconds:,.0f} s"
    bench.tell("peak memory, 1 worker: one big file", done.peak_mib, how)
    shutil.rmtree(folder)
    shutil.rmtree(bench.work / "lake")


def unchanged(bench: Bench) -> None:
    """Many files again, with nothing new, and with one line more in one of them."""
    sizes, lake, tiny_lake = bench.sizes, bench.work / "lake", bench.work / "tiny-lake"
    size = sizes.unchanged_files * sizes.small_file_kb / 1e3
    wires = [part for wire in dict.fromkeys((*bench.wires, "codex-exec")) for part in ("--wire", wire)]
    folder, made = bench.corpus("again", *wires, "--megabytes", size, "--files", sizes.unchanged_files)
    tiny, _ = bench.corpus("tiny-again", "--wire", "codex-exec", "--megabytes", 0.002, "--files", 1)
    bench.runlake(folder, lake)
    bench.runlake(tiny, tiny_lake)
    (grown, *_), (tiny_grown, *_) = (sorted(where.rglob("codex-exec/**/*.jsonl")) for where in (folder, tiny))

    def append(path: Path, where: Path, into: Path) -> Measured:
        with path.open("ab") as file:
            file.write(b'{"type":"turn.started"}\n')
        done = bench.runlake(where, into, new=False)
        if json.loads(done.stdout)[0]["files_grown"] != 1:
            raise SystemExit(f"the ingest did not see that {path} has grown: {done.stdout}")
        return done

    found = best_of(
        max(3, sizes.repeat) if sizes.repeat > 1 else 1,
        {
            "unchanged": lambda: bench.runlake(folder, lake, new=False),
            "unchanged, start-up": lambda: bench.runlake(tiny, tiny_lake, new=False),
            "append": lambda: append(grown, folder, lake),
            "append, start-up": lambda: append(tiny_grown, tiny, tiny_lake),
        },
    )
    files = sum(row["files"] for row in made)
    for name, measure in (
        ("unchanged", "second ingest of unchanged files, beyond start-up"),
        ("append", "append of one line to one of them, ingested, beyond start-up"),
    ):
        beyond = found[name].wall_seconds - found[f"{name}, start-up"].wall_seconds
        how = f"{files:,} files of {sizes.small_file_kb:,.0f} kB; whole process {found[name].wall_seconds:.2f} s"
        bench.tell(measure, beyond, how)
    shutil.rmtree(folder)


def listing(bench: Bench) -> None:
    """As many small sources as one is likely to have, all of them in the lake already."""
    files = bench.sizes.listed_files
    folder, made = bench.corpus("listed", "--wire", "codex-exec", "--megabytes", files * 0.0006, "--files", files)
    first = bench.runlake(folder, bench.work / "lake")
    found = best_of(
        min(2, bench.sizes.repeat), {"again": lambda: bench.runlake(folder, bench.work / "lake", new=False)}
    )
    (told,) = json.loads(found["again"].stdout)
    if told["files_unchanged"] != made[0]["files"]:
        raise SystemExit(f"not all of {files} files are unchanged: {told}")
    how = (
        f"{made[0]['files']:,} files, {made[0]['bytes'] / files:,.0f} bytes each; the first ingest took "
        f"{first.wall_seconds:,.1f} s and {first.peak_mib:,.0f} MiB, this {found['again'].peak_mib:,.0f} MiB"
    )
    bench.tell("a listing of many files with nothing new, whole process", found["again"].wall_seconds, how)
    shutil.rmtree(folder)


def bytes_on_disk(bench: Bench) -> None:
    """The lake against the raw files at zstd -3, as ingested and after compact."""
    lake = bench.work / "lake"
    folder, made = bench.corpus("disk", "--megabytes", bench.sizes.wire_mb * len(bench.wires))
    bench.runlake(folder, lake)
    bench.rival("zstd", folder, None)
    packed = int(bench.rival_output.read_text())
    size = sum(row["bytes"] for row in made)
    how = f"{MIXED}, {size / 1e6:,.0f} MB, which zstd makes {packed / 1e6:,.1f} MB"
    for state in ("ingest", "compact"):
        if state == "compact":
            run_process([*RUNLAKE, "compact", "--lake", lake])
        living = status(lake)
        name = f"bytes on disk against zstd -3 of the raw files, after {state}"
        bench.tell(name, living["bytes"] / packed, f"{how}; {living['parquet_files']:,} files")
    shutil.rmtree(folder)


def report(bench: Bench) -> None:
    """The main reports over the sample corpus of data/."""
    lake = bench.work / "sample-lake"
    bench.runlake(ROOT / "data" / "corpus", lake)
    found = best_of(bench.sizes.report_repeat, {"report": lambda: run_process([*RUNLAKE, "report", "--lake", lake])})
    how = f"data/corpus, {found['report'].cpu_seconds:.2f} CPU s, {found['report'].peak_mib:,.0f} MiB"
    bench.tell("runlake report on the sample lake, whole process", found["report"].wall_seconds, how)


def scale(bench: Bench) -> None:
    """The headline reports over ever larger lakes, which are compacted before each measuring."""
    sizes, lake = bench.sizes, bench.keep or bench.work / "scale-lake"
    if lake.exists():
        raise SystemExit(f"{lake} is there already; the lake of the part scale is made anew")
    names = run_process([sys.executable, "-c", "from analytics.api import MAIN_REPORTS; print(*MAIN_REPORTS)"])
    events = slices = 0
    for wanted in sizes.scale_events:
        while events < wanted:
            slices += 1
            options = ("--megabytes", sizes.scale_slice_mb, "--seed", 100 + slices, "--number-from", slices * 10_000)
            folder, _ = bench.corpus("slice", *options)
            events += events_of(bench.runlake(folder, lake, jobs=2, new=False))
            shutil.rmtree(folder)
            print(f"  {events:,} events", file=sys.stderr, flush=True)
        run_process([*RUNLAKE, "compact", "--lake", lake, "--vacuum"])
        found = best_of(
            min(3, sizes.repeat),
            {
                name: lambda name=name: run_process([*RUNLAKE, "report", name, "--lake", lake])  # type: ignore[misc]
                for name in names.stdout.split()
            }
            | {"all of them in one process": lambda: run_process([*RUNLAKE, "report", "--lake", lake])},
        )
        bench.scale.append({
            "events": events, "lake_bytes": status(lake)["bytes"],
            "peak_mib": max(made.peak_mib for made in found.values()),
            "reports": {name: made.wall_seconds for name, made in found.items()},
        })  # fmt: skip
    last, first = bench.scale[-1], bench.scale[0]
    together = "all of them in one process"
    alone = {name: wall for name, wall in last["reports"].items() if name != together}
    slowest = max(alone, key=lambda name: alone[name])
    how = f"{slowest}, {last['events'] / 1e6:,.2f} M events, {last['lake_bytes'] / 1e6:,.0f} MB, after compact"
    bench.tell("headline reports at 10 M events, the slowest, whole process", alone[slowest], how)
    growth = last["reports"][together] / first["reports"][together] / (last["events"] / first["events"])
    how = f"{first['events'] / 1e6:,.2f} M to {last['events'] / 1e6:,.2f} M events"
    bench.tell("headline reports, all: time at the largest lake against the smallest, per event", growth, how)
    if bench.keep is None:
        shutil.rmtree(lake)


PARTS: dict[str, Callable[[Bench], None]] = {
    "ingest": ingest, "bad": bad, "memory": memory, "unchanged": unchanged, "listing": listing, "bytes": bytes_on_disk,
    "report": report, "big": big, "scale": scale,
}  # fmt: skip
APART = ("big", "scale")  # minutes and tens of gigabytes: only on request
