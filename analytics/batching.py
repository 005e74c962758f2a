"""How the files of an ingest are shared out: batches for commits, groups for calls of the worker, how many at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from analytics.discover import Found
    from analytics.planning import Task

T = TypeVar("T")
TASK_BYTES = 96 << 20
LAST_BYTES = 8 << 20
TASK_FILES = 2_000
BATCH_BYTES = 4 << 30
BATCH_FILES = 8_000
SMALL_BYTES = 48 << 20  # below this a pool costs what it saves (30 MB: 1.05 s without, 1.15 with; 100 MB: 1.72, 1.43)


def jobs_for(found: Sequence[Found], jobs: int | None) -> int:
    """How many processes read these, no more than get something; `jobs`: as the user has it, None = one per core."""
    sizes = [one.size for one in found if one.kind == "file"]
    size = sum(one.size for one in found)
    if size <= SMALL_BYTES or len(sizes) < 2:
        return 1
    wanted = jobs or len(os.sched_getaffinity(0))
    return min(wanted, len(groups_of(sizes, sizes, wanted)))


def batches(tasks: list[Task]) -> Iterator[list[Task]]:
    """Tasks in path order, cut where a batch is large enough to be committed on its own.

    What takes rows out of the lake stands last, in the one commit that also has the copies and the changed states.
    """
    batch: list[Task] = []
    size = 0
    for task in tasks:
        is_full = size + task.found.size > BATCH_BYTES or len(batch) >= BATCH_FILES
        if batch and is_full and not task.replaces:
            yield batch
            batch, size = [], 0
        batch.append(task)
        size += task.found.size
    if batch:
        yield batch


def groups_of(tasks: Sequence[T], sizes: Sequence[int], jobs: int) -> list[list[T]]:
    """What one worker call reads, and so what stands in one Parquet file: neighbours, of about TASK_BYTES.

    Several workers get less towards the end, so that none waits long for another's last.
    """
    left = sum(sizes)
    groups: list[list[T]] = []
    held = limit = 0
    for task, size in zip(tasks, sizes, strict=True):
        if not groups or held + size > limit or len(groups[-1]) >= TASK_FILES:
            groups.append([])
            held, limit = 0, min(TASK_BYTES, max(left // (jobs * 2), LAST_BYTES)) if jobs > 1 else TASK_BYTES
        groups[-1].append(task)
        held += size
        left -= size
    return groups
