"""The worker function in Spark's executors: each task of a job reads one group of files and writes their Parquet files.

Executors commit nothing. The driver, which planned the ingest and holds the lake's lock, makes the one commit from
what the tasks tell; so a killed task, executor or driver leaves files that no version names, and the next writer
deletes them. A task that Spark runs twice writes under another name each time, and only the one that it reports counts.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from analytics.engines.local import Pool, Tick
from analytics.engines.spark.progress import told
from analytics.errors import CannotWrite, RunlakeError
from analytics.tasks import ReadTask, Result, Settings
from analytics.worker import work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULT = "number BIGINT, result BINARY"
ERROR_FILE = "runlake: cannot write "


class SparkPool(Pool):
    """Groups of files to the executors of a Spark session, classic or Connect; streams are read in this process.

    The lake's folder and the sources must have the same path on every executor, and runlake must be installed there.
    """

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        super().__init__(1, settings)
        self._spark = spark

    def run(self, groups: list[list[ReadTask]], numbers: Iterator[int], tick: Tick) -> list[Result]:
        """All groups, a task each; results in the order of the groups. Progress: by tasks done, in bytes as planned."""
        if not groups:
            return []
        mask = os.umask(0o077)
        os.umask(mask)
        given = [(group, next(numbers)) for group in groups]
        settings = self.settings

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for at in batch.column(0).to_pylist():
                    group, number = given[at]
                    packed = pickle.dumps(_work(group, settings, number, mask))
                    yield pa.RecordBatch.from_pydict({"number": [at], "result": [packed]})

        tasks = self._spark.range(0, len(given), 1, numPartitions=len(given))
        planned = sum(task.size_bytes for group in groups for task in group)
        try:
            with told(self._spark, lambda done, of: tick(self._done + planned * done // max(of, 1), self._lines)):
                rows = tasks.mapInArrow(read, RESULT).collect()
        except Exception as error:
            if type(error).__module__.startswith(("pyspark", "py4j")):
                raise self._lost(error) from error
            raise
        results: dict[int, Result] = {row[0]: pickle.loads(row[1]) for row in rows}  # noqa: S301 (our own tasks')
        if len(results) != len(given):
            raise RunlakeError(f"Spark ran {len(results)} of {len(given)} tasks. Nothing was committed; run it again.")
        for group in results.values():
            self._done += sum(record.row.get("bytes_read") or 0 for record in group.records)
            self._lines += sum(record.row.get("lines") or 0 for record in group.records)
        self._tell(tick)
        return [results[at] for at in range(len(given))]

    def _lost(self, error: Exception) -> RunlakeError:
        """What ended the job, as one sentence; Spark tried each task several times."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        refused = next((line.split(ERROR_FILE, 1)[1] for line in lines if ERROR_FILE in line), None)
        if refused is not None:
            return CannotWrite(f"An executor cannot write to the lake: {refused}. Its folder must be there for all.")
        said = lines[-1] if lines else type(error).__name__
        return RunlakeError(
            f"Spark gave up reading for {self.settings.lake}: {said}. Nothing was committed; run the ingest again."
        )


def _work(group: list[ReadTask], settings: Settings, number: int, mask: int) -> Result:
    """One group in an executor, written under names of this attempt alone."""
    os.umask(mask)
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when the redactor imports polars
    pa.set_cpu_count(1)
    mine = replace(settings, attempt=os.urandom(4).hex())
    try:
        return work(group, mine, number, lambda *_: None)
    except OSError as error:
        raise RuntimeError(f"{ERROR_FILE}{error.filename or settings.lake}: {error.strerror or error}") from error


def parallelism(spark: SparkSession) -> int:
    """How many tasks the session runs at once, as far as it says so."""
    said = spark.conf.get("spark.default.parallelism", None)
    if said is not None:
        return max(int(said), 1)
    context = getattr(spark, "_sc", None)  # Spark Connect has none
    return int(context.defaultParallelism) if context is not None else os.cpu_count() or 1
