"""The progress bar of an ingest: bytes, lines a second, what is left; on stderr, and only on a terminal."""

from __future__ import annotations

import sys
from typing import Any, Self


class Bar:
    """Takes `IngestProgress` reports. Without a terminal it says nothing, so logs stay readable."""

    def __init__(self) -> None:
        self._live: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _start(self) -> None:
        from rich.console import Console  # noqa: PLC0415 (50 ms that a log file need not wait for)
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        self._live = Progress(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True),
            TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._live.add_task("reading", total=None, rate="")
        self._live.start()

    def __call__(self, *, bytes_done: int, bytes_total: int, lines: int, seconds: float) -> None:
        """How far the ingest is."""
        if self._live is None:
            return
        rate = f"{lines / seconds:,.0f} lines/s" if seconds > 0 and lines else ""  # Spark tells of tasks, not of lines
        self._live.update(self._task, completed=bytes_done, total=bytes_total, rate=rate)
