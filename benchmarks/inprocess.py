"""What the measurements of the worker alone share: it runs in this process, so start-up is not in the figures."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from analytics import reading, wires
from analytics.tasks import ReadTask, Settings
from analytics.withoutpandas import hide_pandas
from analytics.worker import work

hide_pandas()  # as in the processes that are measured otherwise
BATCH_BYTES = 96 << 20  # what one call of the worker gets, as an ingest has it


def files_at(paths: list[Path]) -> list[Path]:
    """All streams below the paths; a `.txt` file is a list of them, one path a line."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(file for file in path.rglob("*") if file.is_file())
        elif path.suffix == ".txt":
            found += [Path(line) for line in path.read_text(encoding="utf-8").splitlines()]
        else:
            found.append(path)
    return found


def wire_at(path: Path) -> str:
    """The wire of a stream."""
    with path.open("rb") as file:
        head = file.read(reading.HEAD_BYTES)
    found = wires.sniff(reading.take_sample(head, 0, len(head), whole=len(head) < reading.HEAD_BYTES))
    if found is None:
        raise SystemExit(f"{path} is of no known wire; name streams alone")
    return found[0]


def cpu_of(job: Callable[[Path], None]) -> float:
    """CPU seconds of one run of a job, which gets a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        job(Path(folder))
        return time.process_time() - begin


def through_worker(files: list[Path], folder: Path, *, redact: bool = True) -> int:
    """All files through the worker, as an ingest with one job has them; how many secrets were replaced."""
    settings = Settings(str(folder), "bench", redact=redact)
    replaced = 0
    for number, batch in enumerate(_batches(files)):
        tasks = [ReadTask(str(path), hashlib.sha256(f"{number} {path}".encode()).hexdigest()[:16]) for path in batch]
        result = work(tasks, settings, number, lambda _octets, _lines: None)
        replaced += sum(record.row.get("redactions") or 0 for record in result.records)
    return replaced


def _batches(files: list[Path]) -> Iterator[list[Path]]:
    batch: list[Path] = []
    size = 0
    for file in files:
        batch.append(file)
        size += file.stat().st_size
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
