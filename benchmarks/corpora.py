"""Write a seeded corpus of all wires, or of some, for measuring. Its figures mean nothing; data/ has one with a truth.

    python benchmarks/corpora.py OUT [--wire NAME]… [--megabytes 100] [--files N | --file-kb 1500] [--line-bytes 1000]
                                     [--bad 0.002] [--seed 1] [--number-from 0] [--jobs 1]

OUT/WIRE/000/000000.jsonl and so on; each wire gets the same share of the bytes and of the files. Sizes of lines have a
heavy tail: most are between 150 bytes and 2 kB, some reach 200 kB, and --line-bytes is their mean. Text is made of
words and of what programs print, and compresses about 4 : 1. --bad 0.002 damages a line in every 500, evenly spread:
broken off, followed by text, not UTF-8, with a NUL byte. --number-from numbers the files from there on, so that corpora
with other numbers and another seed hold other runs. Prints one JSON object per wire: files, bytes, lines, bad lines.

A corpus is decided by its arguments: the same ones give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from streams import (
    claude_code,
    claude_stream,
    codex_exec,
    codex_rollout,
    harness_lab,
    metaharness,
    platonic_core,
)  # fmt: skip
from streams.voice import Pages, Voice

FILES_A_FOLDER = 500
RUN_BYTES = 500_000  # of a run that shares its file with others
RUNS_A_FILE = 100_003  # at most; odd, so that kinds of runs take turns over files, too
PROBE_RUNS, PROBE_BYTES = 24, 60_000
PROBES = (100.0, 1_000.0)
BETWEEN_WORDS = 5.0  # a text ends with a word, so it is about so much longer than asked for


def broken_off(line: str) -> str:
    return line[: len(line) * 2 // 3]


def followed(line: str) -> str:
    return line + " <-- flushed twice"


def not_utf8(line: str) -> str:
    return line[:-1] + ',"note":"\xff\xc3"}'


def with_nul(line: str) -> str:
    return line[:-1] + ',"note":"a\0b"}'


@dataclass(frozen=True, slots=True)
class Wire:
    """How one wire's files are written."""

    run: Callable[[Voice, int, Callable[[], bool]], Iterator[str]]
    shares_files: bool = False  # a file may hold several runs
    damage_has_a_number: bool = False  # a damaged line stands for an event of the stream, not between two
    damages: tuple[Callable[[str], str], ...] = (broken_off, followed, not_utf8, with_nul)


WIRES = {
    "metaharness": Wire(metaharness.run, shares_files=True, damage_has_a_number=True),
    "harness-lab": Wire(harness_lab.run, shares_files=True),
    "platonic-core": Wire(platonic_core.run),
    "claude-code": Wire(claude_code.run),
    # text after a row is no damage there
    "claude-stream": Wire(claude_stream.run, damages=(broken_off, not_utf8, with_nul)),
    "codex-rollout": Wire(codex_rollout.run),
    "codex-exec": Wire(codex_exec.run),
}


@dataclass(frozen=True, slots=True)
class Order:
    """What to write, for each wire: bytes and files are the wire's own."""

    size_bytes: int
    files: int
    line_bytes: int = 1_000
    bad_share: float = 0.0
    seed: int = 1
    number_from: int = 0


@dataclass(slots=True)
class Written:
    """What one wire's part of a corpus holds."""

    wire: str
    files: int = 0
    bytes: int = 0
    lines: int = 0
    bad_lines: int = 0


class Blank(Pages):
    """Text of which only the size counts."""

    def __init__(self) -> None:
        self.page = "x" * 200_000

    def take(self, size: int) -> str:
        """So many bytes."""
        return self.page[:size]


def mean_text(wire: str, line_bytes: int) -> float:
    """How long texts must be on average for lines to have a mean of `line_bytes`; ValueError if they cannot."""
    means = []
    for probe in PROBES:
        voice = Voice(Blank(), "probe", probe)
        size = lines = 0
        for number in range(PROBE_RUNS):
            voice.new_run(number)
            end = size + PROBE_BYTES
            for line in WIRES[wire].run(voice, number, lambda: size < end):  # noqa: B023 - asked before they change
                size += len(line) + 1
                lines += 1
        means.append(size / lines)
    per_byte = (means[1] - means[0]) / (PROBES[1] - PROBES[0])
    wanted = (line_bytes - means[0]) / per_byte + PROBES[0] - BETWEEN_WORDS
    if wanted < 16:
        bare = means[0] - per_byte * PROBES[0]
        raise ValueError(f"{wire}: lines have {bare:.0f} bytes before any text is in them; {line_bytes} are too few")
    return wanted


def write_wire(folder: Path, wire: str, order: Order) -> Written:
    """Write one wire's files below `folder`."""
    how = WIRES[wire]
    seed = f"{order.seed}/{wire}"
    pages = Pages(order.seed * len(WIRES) + list(WIRES).index(wire))
    voice = Voice(pages, seed, mean_text(wire, order.line_bytes))
    every = round(1 / order.bad_share) if order.bad_share else 0
    done = Written(wire)
    for place in range(order.files):
        number = order.number_from + place
        path = folder / wire / f"{number // FILES_A_FOLDER:03d}" / f"{number:06d}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        limit = (order.size_bytes - done.bytes) // (order.files - place)
        with path.open("wb") as file:
            size = runs = 0
            while size < limit or not size:
                run = number * RUNS_A_FILE + runs if how.shares_files else number
                runs += 1
                end = min(limit, size + RUN_BYTES) if how.shares_files else limit
                voice.new_run(run)
                for line in how.run(voice, run, lambda: size < end):  # noqa: B023 - asked before they change
                    done.lines += 1
                    if every and done.lines % every == every // 2:
                        damaged = how.damages[done.bad_lines % len(how.damages)](line)
                        done.bad_lines += 1
                        size += file.write(damaged.encode("latin-1") + b"\n")
                        if how.damage_has_a_number:
                            continue
                        done.lines += 1
                    size += file.write(line.encode("latin-1") + b"\n")
            done.bytes += size
            done.files += 1
    return done


def write(folder: Path, wires: list[str], order: Order, jobs: int = 1) -> list[Written]:
    """Write a corpus below `folder`; `order` is for all wires together, each gets its share."""
    count = len(wires)
    shares = [
        replace(order, size_bytes=order.size_bytes // count, files=max(1, (order.files + place) // count))
        for place in range(count)
    ]
    job = partial(write_wire, folder)
    if jobs == 1:
        return list(map(job, wires, shares))
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(job, wires, shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--wire", action="append", choices=list(WIRES), help="may be repeated; else all")
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--files", type=int)
    parser.add_argument("--file-kb", type=float, default=1_500)
    parser.add_argument("--line-bytes", type=int, default=1_000)
    parser.add_argument("--bad", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number-from", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    size = int(given.megabytes * 1e6)
    files = given.files or max(1, round(size / (given.file_kb * 1e3)))
    order = Order(size, files, given.line_bytes, given.bad, given.seed, given.number_from)
    try:
        made = write(given.out, given.wire or list(WIRES), order, given.jobs)
    except ValueError as error:
        sys.exit(str(error))
    for written in made:
        print(json.dumps(asdict(written)))


if __name__ == "__main__":
    main()
