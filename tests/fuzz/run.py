"""Damaged streams without end: `python tests/fuzz/run.py WIRE --minutes 10 --seed 1`, or `--number N` for one input.

Every finding is printed and its inputs are written to `--keep`; the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from conftest import CORPUS
from fuzz import mutate, oracle
from helpers import FIXTURES

from analytics import reading, wires
from analytics.wires import BY_NAME

SEED_BYTES = 300_000
BATCH = 60
THOROUGH_EACH = 5  # lakes


@dataclass(slots=True)
class Outcome:
    """What a search came to."""

    inputs: int = 0
    lakes: int = 0
    otherwise: int = 0
    findings: list[oracle.Finding] = field(default_factory=list)


def seeds(wire: str) -> mutate.Seeds:
    """Every stream of the wire among the fixtures and in the sample corpus, by content."""
    streams, documents = [], []
    for root in (FIXTURES, CORPUS):
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix in {".jsonl", ".json", ".log"} and path.stat().st_size < SEED_BYTES:
                data = path.read_bytes()
                sample = reading.take_sample(bytearray(data), 0, len(data), whole=True)
                known = wires.sniff(sample)
                if known is not None and known[0] == wire:
                    (documents if known[1] in BY_NAME[wire].documents else streams).append(data)
    return mutate.Seeds(streams, documents)


def made(known: mutate.Seeds, wire: str, seed: int, number: int) -> bytes:
    """Input `number` of a search."""
    return mutate.stream(Random(f"{wire} {seed} {number}"), known)


def search(
    wire: str, seed: int, *, seconds: float, folder: Path, most: int | None = None, lake_each: int = 300,
    say: bool = False,
) -> Outcome:  # fmt: skip
    """Batches of inputs until the time is over or `most` were read; every `lake_each` of them go into one lake."""
    known, rng, outcome = seeds(wire), Random(seed), Outcome()
    collected: dict[int, bytes] = {}
    end, signatures = time.monotonic() + seconds, set()
    while time.monotonic() < end and (most is None or outcome.inputs < most):
        size = BATCH if most is None else min(BATCH, most - outcome.inputs)
        numbers = range(outcome.inputs, outcome.inputs + size)
        inputs = {number: made(known, wire, seed, number) for number in numbers}
        named, redact = rng.choice((None, wire)), rng.random() < 0.5
        found, otherwise = oracle.search(folder, inputs, named, rng.randrange(2**32), redact=redact)
        outcome.inputs += size
        outcome.otherwise += otherwise
        collected |= inputs
        if len(collected) >= lake_each:
            found += oracle.search_lake(folder, collected, signatures, is_thorough=outcome.lakes % THOROUGH_EACH == 0)
            outcome.lakes += 1
            collected = {}
        for one in found:
            if one.signature not in signatures:
                signatures.add(one.signature)
                outcome.findings.append(one)
                if say:
                    print(f"FOUND in inputs {[number for number, _ in one.inputs][:10]}: {one.what}", flush=True)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wire", choices=list(BY_NAME))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=Random().randrange(1_000_000))
    parser.add_argument("--number", type=int, help="write this one input to standard output, and search nothing")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="where the inputs of findings go")
    asked = parser.parse_args()
    if asked.number is not None:
        sys.stdout.buffer.write(made(seeds(asked.wire), asked.wire, asked.seed, asked.number))
        return 0
    print(f"{asked.wire}, seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        outcome = search(asked.wire, asked.seed, seconds=asked.minutes * 60, folder=Path(folder), say=True)
    for place, finding in enumerate(outcome.findings):
        kept = asked.keep / f"{asked.wire}-{asked.seed}-{place}"
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "what.txt").write_text(f"{finding.what}\n\n{finding.trace}")
        for number, data in finding.inputs:
            (kept / f"{number}.jsonl").write_bytes(data)
    print(
        f"{asked.wire}: {outcome.inputs} inputs, {outcome.lakes} lakes, {outcome.otherwise} beginnings taken for "
        f"another format, {len(outcome.findings)} findings"
    )
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
