"""How many tasks of a running job are done, while the driver waits for it: classic Spark is asked, Connect tells."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[int, int], None]  # tasks done, tasks in all
POLL_SECONDS = 0.5
_GROUP, _TITLE = "spark.jobGroup.id", "spark.job.description"


@contextmanager
def told(spark: SparkSession, tell: Tell) -> Iterator[None]:
    """While the body runs one job of this session, `tell` is called with how far it is; from another thread."""
    context = getattr(spark, "_sc", None)  # Spark Connect has none
    with _connect(spark, tell) if context is None else _classic(context, tell):
        yield


@contextmanager
def _connect(spark: Any, tell: Tell) -> Iterator[None]:
    def handler(stages: Any, **_: Any) -> None:
        known = list(stages or ())
        if known:
            tell(sum(one.num_completed_tasks for one in known), sum(one.num_tasks for one in known))

    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


@contextmanager
def _classic(context: Any, tell: Tell) -> Iterator[None]:
    from py4j.protocol import Py4JError  # noqa: PLC0415 (comes with pyspark, an extra)

    group, ended = f"runlake-{os.urandom(4).hex()}", threading.Event()
    before = {name: context.getLocalProperty(name) for name in (_GROUP, _TITLE)}  # what the session's owner set

    def poll() -> None:
        tracker = context.statusTracker()
        while not ended.wait(POLL_SECONDS):
            try:
                known = list(_stages(tracker, group))
            except (Py4JError, OSError):  # the JVM is gone, which the job itself tells
                return
            if known:
                tell(sum(one.numCompletedTasks for one in known), sum(one.numTasks for one in known))

    context.setJobGroup(group, "runlake ingest")
    asking = threading.Thread(target=poll, daemon=True)
    asking.start()
    try:
        yield
    finally:
        ended.set()
        asking.join()
        for name, text in before.items():
            context.setLocalProperty(name, text)


def _stages(tracker: Any, group: str) -> Iterator[Any]:
    for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)):
        for stage in map(tracker.getStageInfo, () if job is None else job.stageIds):
            if stage is not None:
                yield stage
