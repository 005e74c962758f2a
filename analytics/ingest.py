"""Discover, compare with the ledger, read in parallel, commit: the way of a corpus into the lake.

Sources are read in batches; each batch becomes visible in one commit, so a killed ingest loses at most the batch it
was in, and the next one reads only what is missing.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext
from copy import deepcopy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from analytics import engines
from analytics.batching import batches, groups_of, jobs_for
from analytics.discover import Discovery, discover
from analytics.errors import Overtaken, UsageError
from analytics.ingestreport import IngestReport, Progress
from analytics.lake import Store
from analytics.lakefiles import WrittenFile, data_path, describe, new_ingest_id, parquet_writer, runlake_version
from analytics.ledger import NOTHING_HERE, Ledger, Row, hide_secrets, source_table
from analytics.limits import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES, MAX_RATIO
from analytics.originals import Original
from analytics.places import is_remote
from analytics.planning import Copy, Plan, Task, plan
from analytics.refusals import NAMES
from analytics.retrying import SoFar, batches_of, restore, seen_by
from analytics.tasks import ReadTask, Settings
from analytics.wires import BY_NAME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.engines.local import Pool
    from analytics.tasks import FileRecord


def ingest(
    lake: str | os.PathLike[str],
    paths: Iterable[str | os.PathLike[str]],
    *,
    jobs: int | None = None,
    wire: str | None = None,
    redact: bool = True,
    again: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    max_ratio: int = MAX_RATIO,
    shared: bool = False,
    spark: SparkSession | None = None,
    host: str | None = None,
    progress: Progress | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> IngestReport:
    """Read what is new under `paths` into the lake. Raises UsageError on a wrong call, RunlakeError if a commit fails.

    A source that cannot be read, a refused line or a skipped file is no failure: it is in the report and in the lake.
    `spark`: files are read by the executors of this Spark session instead of local processes. `host`: what this
    machine is called in the lake; else RUNLAKE_HOST, else its node name.
    """
    if wire is not None and wire not in BY_NAME:
        raise UsageError.unknown_name("wire", wire, list(BY_NAME))
    started = time.monotonic()
    # a new process that runs the script's first lines again has no parent yet; the mark is multiprocessing's own
    is_inside = multiprocessing.parent_process() is not None or hasattr(
        multiprocessing.current_process(), "_inheriting"
    )
    if is_inside and jobs != 1 and spark is None:
        raise UsageError(
            "ingest was called inside a worker process: the calling script runs again in each worker. "
            "Put the call under `if __name__ == '__main__':`, or use jobs=1."
        )
    given = list(paths)
    alone = not is_remote(lake)  # else others may commit while we look: see below
    discovery = discover(given) if alone else Discovery()
    store = Store.open(lake, create=True, shared=shared)
    waited: list[str] = []

    def wait(sentence: str) -> None:
        waited.append(sentence)
        if on_wait is not None:
            on_wait(sentence)

    with store.lock(wait), ExitStack() as at_end:
        if waited or not alone:  # what was found before the ledger was read would seem to have shrunk if it grew since
            discovery = discover(given)
        store.vacuum_orphans()
        ingest_id = new_ingest_id()
        settings = Settings(str(store.root), ingest_id, wire, redact, max_line_bytes, max_document_bytes, max_ratio)
        report = IngestReport(store.version, ingest_id)
        so_far = SoFar()
        while True:
            if alone or so_far.is_begun:
                store = store.latest()
            ledger = Ledger.load(store, host=host)
            pool: Pool | None = None
            if not ledger.known and spark is None:  # all is new: no need to wait for the plan
                with store.private():  # as the files of the pool's processes are to be
                    pool = at_end.enter_context(engines.pool(settings, jobs_for(discovery.found, jobs), spark))
                pool.start()
            todo = so_far.rest_of(plan(ledger, discovery, ingest_id=ingest_id, wire=wire, again=again))
            if todo.is_empty:
                store = store.refresh()
                break
            run = _Run(store, ledger, todo, settings, report, jobs, progress, started, so_far, spark)
            with store.writing():
                if not redact:
                    run.store = run.store.mark_unredacted()
                is_done = run.go(pool)
            store = run.store
            if is_done:
                break
            so_far.wait(store.root)
            discovery = discover(given)  # as above
        report.close(discovery, todo, store.version, read_now=so_far.paths)
    report.seconds = time.monotonic() - started
    return report


class _Run:
    """One ingest under the lock."""

    def __init__(
        self, store: Store, ledger: Ledger, todo: Plan, settings: Settings, report: IngestReport, jobs: int | None,
        progress: Progress | None, started: float, so_far: SoFar, spark: SparkSession | None,
    ) -> None:  # fmt: skip
        self.store, self.todo, self.settings, self.report = store, todo, settings, report
        self.progress, self.started = progress, started
        self.now = datetime.now(UTC)
        self.ledger = ledger
        self.so_far, self.numbers, self.planned_at = so_far, so_far.numbers, store.version
        self.originals: dict[str, Original | None] = {copy.copy_of: None for copy in todo.copies}
        from analytics.redact import Redactor  # noqa: PLC0415 (the same)

        self.redactor = Redactor() if settings.redact else None
        self.unread: set[str] = set()  # sources that keep their rows, since what was to replace them could not be read
        self.total = sum(task.found.size for task in todo.read)
        self.jobs = jobs_for([task.found for task in todo.read], jobs)
        self.spark = spark
        if spark is not None:
            self.jobs = jobs or engines.parallelism(spark)

    def go(self, pool: Pool | None) -> bool:
        """All batches; the last one also says what changed without being read. `pool`: one that was started already.

        False: another writer was first with something of a batch, and what is not committed has to be planned anew.
        """
        parts = batches_of(self.todo, self.store.root, batches(self.todo.read))
        with nullcontext(pool) if pool else engines.pool(self.settings, self.jobs, self.spark) as readers:
            for number, batch in enumerate(parts, 1):
                before = deepcopy(self.report)
                try:
                    self.batch(readers, next(self.so_far.batches), batch, last=number == len(parts))
                except Overtaken:
                    restore(self.report, before)
                    return False
                self.so_far.add(batch)
        return True

    def batch(self, pool: Pool, number: int, tasks: list[Task], *, last: bool) -> None:
        """Read one batch and commit it."""
        streams = [task for task in tasks if task.found.kind == "stream"]
        files = [task for task in tasks if task.found.kind == "file"]
        sizes = [task.found.size for task in files]
        groups = [[_read_task(task) for task in group] for group in groups_of(files, sizes, self.jobs)]
        results = pool.run(groups, self.numbers, self.tick)
        by_id = {task.source_id: task for task in tasks}
        added: list[WrittenFile] = [file for result in results for file in result.files]
        records = [record for result in results for record in result.records]
        for task in streams:
            result = pool.here([_read_task(task)], next(self.numbers), self.tick)
            record = result.records[0]
            digest = record.row.get("digest")
            original = self.ledger.with_content(digest, record.row["bytes_read"]) if digest is not None else None
            if original is not None:
                self.forget(result.files)
                self.report.files_copied += 1
                continue
            added += result.files
            records.append(record)
        if last:
            pool.end()
        rows = self.rows(records, by_id)
        read = {record.source_id for record in records if record.status != "unreadable"}
        replaced = {source for task in tasks if task.source_id in read for source in task.replaces}
        self.unread |= {source for task in tasks if task.source_id not in read for source in task.replaces}
        if last:
            self.closing_rows(rows)
        added += self.source_files(rows)
        removed: Sequence[str] = ()
        if replaced:
            done = self.store.replace_sources(replaced, self.settings.ingest_id)
            added, removed = added + list(done.added), list(done.removed)
        note = f"ingest of {len(tasks)} sources"
        self.report.bytes_out += sum(file.size_bytes for file in added)
        since = (self.planned_at, seen_by(self.ledger, tasks, self.todo if last else None))
        try:
            self.store = self.store.commit(
                added, removed, ingest_id=self.settings.ingest_id, note=note, batch=number, since=since
            )
        except Overtaken:
            self.forget(added)
            raise

    def rows(self, records: list[FileRecord], tasks: dict[str, Task]) -> dict[str, list[Row]]:
        """Ledger rows of what was read, per wire; counts them into the report."""
        rows: dict[str, list[Row]] = {}
        for record in records:
            task = tasks[record.source_id]
            if record.source_id in self.originals:
                self.originals[record.source_id] = Original(task, record)
            if record.status == "unreadable":
                self.report.problems.append((task.found.display, record.reason or ""))
                continue
            row = self.row(record, task)
            rows.setdefault(record.wire, []).append(row)
            self.count(record, task, row)
        return rows

    def row(self, record: FileRecord, task: Task) -> Row:
        """One ledger row."""
        said = self.common() | dict(NOTHING_HERE) | record.row
        prior = task.prior
        return said | {
            "wire": record.wire, "source_id": record.source_id, "revision": task.revision, "path": task.found.display,
            "status": record.status, "status_reason": record.reason,
            "first_seen": prior["first_seen"] if prior else self.now,
        }  # fmt: skip

    def common(self) -> Row:
        """What every ledger row of this ingest says."""
        return {
            "ingest_id": self.settings.ingest_id, "host": self.ledger.host, "is_redacted": self.settings.redact,
            "first_seen": self.now, "last_seen": self.now, "runlake_version": runlake_version(),
        }  # fmt: skip

    def count(self, record: FileRecord, task: Task, row: Row) -> None:
        """Add one record to the report; of a grown source only what is new."""
        report = self.report
        if record.status == "skipped":
            report.skipped.append((task.found.display, record.reason or ""))
            return
        if record.status == "refused":
            report.files_refused += 1
            report.problems.append((task.found.display, record.reason or ""))
        elif record.went_on:
            report.files_grown += 1
        elif task.kind == "new":
            report.files_new += 1
        else:
            report.files_rewritten += 1
        before: Any = task.prior if record.went_on else {}
        report.lines += (row["lines"] or 0) - (before.get("lines") or 0)
        report.events += row["events"] - before.get("events", 0)
        report.blank_lines += (row["blank_lines"] or 0) - (before.get("blank_lines") or 0)
        report.redactions += row["redactions"] - before.get("redactions", 0)
        report.bytes_in += (row["bytes_read"] or 0) - (before.get("bytes_read") or 0)
        report.pending_tails += bool(row["pending_bytes"])
        for reason, count in record.refusals_by_reason.items():
            if reason not in NAMES:
                raise AssertionError(f"{reason!r} is no refusal reason; add it to analytics/refusals.py")
            report.refusals_by_reason[reason] = report.refusals_by_reason.get(reason, 0) + count

    def closing_rows(self, rows: dict[str, list[Row]]) -> None:
        """Ledger rows of copies, and of sources whose state changed though they were not read."""
        for copy in self.todo.copies:
            self.copy(copy, rows)
        changes = {source: change for source, change in self.todo.changes.items() if source not in self.unread}
        restated = self.ledger.restated(changes, ingest_id=self.settings.ingest_id, now=self.now)
        for wire, group in restated.items():
            rows.setdefault(wire, []).extend(group)

    def copy(self, copy: Copy, rows: dict[str, list[Row]]) -> None:
        """The ledger row of a copy, if the lake has what it is a copy of; else the next ingest takes it up."""
        read_now = self.originals[copy.copy_of]
        known: Row = self.ledger.row(copy.copy_of) or {}
        if read_now is not None and read_now.is_known:
            wire, said = read_now.record.wire, read_now.record.row
            status, reason = read_now.record.status, read_now.record.reason
        elif read_now is None or read_now.task.kind == "grown":  # its rows are those that the plan saw
            wire, said, status, reason = known["wire"], known, "read", None
        else:
            path = read_now.task.found.display
            why = f"it is a copy of {path}, which changed before it was read; the next ingest reads it"
            self.report.problems.append((copy.found.display, why))
            return
        row = copy.row(host=self.ledger.host, wire=wire, shape=said.get("shape"), digest=said.get("digest"))
        if status == "skipped":
            row |= {"status": status, "status_reason": reason, "copy_of": None}
            self.report.skipped.append((copy.found.display, reason or ""))
        else:
            self.report.files_copied += 1
        row = {name: value for name, value in row.items() if value is not None}
        rows.setdefault(wire, []).append(self.common() | row)

    def source_files(self, rows: dict[str, list[Row]]) -> list[WrittenFile]:
        """Write the ledger rows, one file per wire."""
        files = []
        number = next(self.numbers)
        for wire, group in rows.items():
            if self.redactor is not None:
                hide_secrets(group, self.redactor)
            relative = data_path("source", wire, self.settings.ingest_id, number)
            with parquet_writer(self.store.root / relative, "source", level=3) as writer:
                writer.write_table(source_table(group))
            files.append(describe(self.store.root, relative))
        return files

    def forget(self, files: Iterable[WrittenFile]) -> None:
        """Delete files that are not to be committed after all."""
        for file in files:
            (self.store.root / file.relative).unlink()

    def tick(self, done: int, lines: int) -> None:
        """Pass progress on."""
        if self.progress is not None:
            seconds = time.monotonic() - self.started
            self.progress(bytes_done=done, bytes_total=self.total, lines=lines, seconds=seconds)


def _read_task(task: Task) -> ReadTask:
    prior = task.prior if task.kind == "grown" else None
    return ReadTask(task.found.path, task.source_id, prior, task.found.size)
