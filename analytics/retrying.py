"""What one ingest has committed so far, and what the rest of it builds on: for lakes that others write to, too.

On an object store no lock keeps other hosts away. A batch whose sources another writer has read meanwhile is not
committed; the rest is planned once more, against the ledger as it is by then.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from analytics.errors import LakeError
from analytics.places import Place, is_remote

if TYPE_CHECKING:
    from analytics.ingestreport import IngestReport
    from analytics.ledger import Ledger
    from analytics.planning import Plan, Task

MOST_TRIES = 10
_LONGEST_SECONDS = 5.0


class SoFar:
    """The commits of one ingest, over all its plans. File and batch numbers go on, so that none is used twice."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.numbers = itertools.count(1)
        self.batches = itertools.count(1)
        self._sources: set[str] = set()
        self._tries = 0

    @property
    def is_begun(self) -> bool:
        """True: it was planned before."""
        return self._tries > 0

    def rest_of(self, todo: Plan) -> Plan:
        """A plan without what was read already: a stream cannot be read twice, and `again` means once."""
        if self._sources:
            todo.read = [task for task in todo.read if task.source_id not in self._sources]
        return todo

    def add(self, tasks: Iterable[Task]) -> None:
        """These are committed."""
        for task in tasks:
            self._sources.add(task.source_id)
            self.paths.add(task.found.path)

    def wait(self, root: Place) -> None:
        """Before another plan; raises LakeError where there were too many."""
        self._tries += 1
        if self._tries >= MOST_TRIES:
            raise LakeError.overtaken(root, self._tries)
        time.sleep(random.uniform(0, min(_LONGEST_SECONDS, 0.1 * 2**self._tries)))  # noqa: S311 (no secret)


def batches_of(todo: Plan, root: Place, batches: Iterator[list[Task]]) -> list[list[Task]]:
    """The batches, in order. Into an object store each stream goes by itself, where nothing can overtake it."""
    parts = list(batches)
    if not is_remote(root):
        return parts or [[]]
    streams = [[task] for part in parts for task in part if task.found.kind == "stream"]
    files = [[task for task in part if task.found.kind == "file"] for part in parts]
    files = [part for part in files if part]
    return streams + (files or ([[]] if todo.copies or todo.changes or not streams else []))


def seen_by(ledger: Ledger, tasks: Iterable[Task], todo: Plan | None) -> dict[str, int]:
    """The sources whose ledger rows a batch builds on, each with its revision. `todo`: it has the closing rows, too."""
    sources: set[str] = set()
    for task in tasks:
        if task.found.kind == "file":
            sources |= {task.source_id, *task.replaces}
    if todo is not None:
        sources |= todo.changes.keys()
        for copy in todo.copies:
            sources |= {copy.source_id, copy.copy_of}
    return {source: ledger.known[source].revision if source in ledger.known else 0 for source in sources}


def restore(report: IngestReport, before: IngestReport) -> None:
    """What was counted since is not in the lake."""
    for field in fields(report):
        setattr(report, field.name, getattr(before, field.name))
