"""Whether what was read of a source is what its copies were compared with; else they may hold what is nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.planning import Task
    from analytics.tasks import FileRecord


@dataclass(frozen=True, slots=True)
class Original:
    """A source that others are copies of, read by this ingest."""

    task: Task
    record: FileRecord

    @property
    def is_known(self) -> bool:
        """What was read is what the copies were compared with, not what the file became since."""
        if self.task.kind == "grown":
            return self.record.went_on
        found, row = self.task.found, self.record.row
        is_same = (row.get("size_bytes"), row.get("mtime_ns")) == (found.size, found.mtime_ns)
        return is_same and self.record.status != "unreadable"
