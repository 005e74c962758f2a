"""The local engine: the worker function in this process, or in a pool of processes."""

from __future__ import annotations

import atexit
import gc
import multiprocessing as mp
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Self

from analytics.errors import CannotWrite, RunlakeError
from analytics.tasks import ReadTask, Result, Settings
from analytics.withoutpandas import hide_pandas

Tick = Callable[[int, int], None]
POLL_SECONDS = 0.1
PARENT_SECONDS = 0.1
_counters: tuple[Any, Any] | None = None


def _start(done: Any, lines: Any, stop: Any, mask: int, parent: int) -> None:
    """Runs once in each process of the pool; `parent` may have ended before it does."""
    global _counters  # noqa: PLW0603 (a pool hands shared counters over only here)
    _counters = (done, lines)
    atexit.register(gc.freeze)  # or Python looks through all that is left for cycles, which the exit frees anyway
    os.umask(mask)
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when the redactor imports polars
    hide_pandas()
    import pyarrow as pa  # noqa: PLC0415 (only workers need it set)

    pa.set_cpu_count(1)
    threading.Thread(target=_end_with, args=(parent, stop), daemon=True).start()


def _end_with(parent: int, stop: Any) -> None:
    """A killed ingest must not leave its workers waiting for work that never comes, nor a stopped one wait for them."""
    while os.getppid() == parent and not stop.value:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until what is started inside is there. Processes started here take no Ctrl-C themselves,
    which a terminal sends to all: the driver has them end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in (signal.SIGINT, signal.SIGTERM)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for late in came:
            signal.raise_signal(late)


def _advance(octets: int, lines: int) -> None:
    if _counters is None:
        return
    for counter, amount in zip(_counters, (octets, lines), strict=True):
        with counter.get_lock():
            counter.value += amount


def _ready() -> None:
    """The least that makes a process of the pool start."""
    import analytics.worker  # noqa: F401, PLC0415 (0.2 s; who hands its files to a pool reads none itself)


def _work(tasks: list[ReadTask], settings: Settings, number: int) -> Result:
    from analytics.worker import work  # noqa: PLC0415 (the same)

    return work(tasks, settings, number, _advance)


class Pool:
    """`jobs` processes; one job runs in this process. Files of a failed call are left for the next writer to remove."""

    def __init__(self, jobs: int, settings: Settings) -> None:
        self.settings = settings
        self._done = self._lines = 0
        self._executor: ProcessPoolExecutor | None = None
        self._ending: threading.Thread | None = None
        self._jobs = jobs
        if jobs > 1:
            context = mp.get_context("spawn")
            self._shared = (context.Value("q", 0), context.Value("q", 0))
            self._stop = context.RawValue("b", 0)
            mask = os.umask(0o077)
            os.umask(mask)
            self._executor = ProcessPoolExecutor(
                jobs, mp_context=context, initializer=_start, initargs=(*self._shared, self._stop, mask, os.getpid())
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._ending is not None:
            self._ending.join()
        elif self._executor is not None:
            self._stop.value = kind is not None
            self._executor.shutdown(wait=True, cancel_futures=kind is not None)

    def start(self) -> None:
        """Has the processes start now, beside what this one does next."""
        if self._executor is not None:
            with _undisturbed():
                for _ in range(self._jobs):
                    self._executor.submit(_ready)

    def end(self) -> None:
        """Has the processes end now, beside what this one does next: nothing more is to be read."""
        if self._executor is not None:
            self._ending = threading.Thread(target=self._executor.shutdown)
            self._ending.start()

    def run(self, groups: list[list[ReadTask]], numbers: Iterator[int], tick: Tick) -> list[Result]:
        """All groups; results in the order of the groups."""
        if self._executor is None:
            return [self.here(group, next(numbers), tick) for group in groups]
        submit = self._executor.submit
        try:
            with _undisturbed():
                futures: list[Future[Result]] = [submit(_work, group, self.settings, next(numbers)) for group in groups]
        except BrokenProcessPool as lost:
            raise self._failed(lost) from lost
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            self._tell(tick)
            for future in done:
                error = future.exception()
                if error is not None:
                    raise self._failed(error)
        return [future.result() for future in futures]

    def here(self, group: list[ReadTask], number: int, tick: Tick) -> Result:
        """One group in this process."""

        def advance(octets: int, lines: int) -> None:
            self._done += octets
            self._lines += lines
            self._tell(tick)

        from analytics.worker import work  # noqa: PLC0415 (the same)

        try:
            return work(group, self.settings, number, advance)
        except OSError as error:
            raise self._failed(error) from error

    def _tell(self, tick: Tick) -> None:
        done, lines = self._done, self._lines
        if self._executor is not None:
            # past their locks, which a killed worker may have taken along
            done, lines = (n + shared.get_obj().value for n, shared in zip((done, lines), self._shared, strict=True))
        tick(done, lines)

    def _failed(self, error: BaseException) -> BaseException:
        if isinstance(error, OSError):
            return CannotWrite.at("write to", error.filename or self.settings.lake, error)
        if isinstance(error, BrokenProcessPool):
            return RunlakeError.worker_lost(self.settings.lake)
        return error
