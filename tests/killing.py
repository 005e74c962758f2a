"""Commands that are killed, run out of disk, or run at once; and a reader that looks on the whole time.

`Forge` and `Onlooker` are what tests use. Each is a process of this file run as a script: it imports everything once
and forks every command, so that what happens to a command falls on its work and not on its imports.
"""

from __future__ import annotations

import importlib
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

PHASES = ("between", "discover", "clean", "plan", "read", "gather", "write", "sync", "commit", "publish", "delete")
REPORTS = ("overview", "denials")
CHECKS = ("lines_of_sources", "rows_of_sources", "events_have_sources", "unique_events", "pieces_of_runs", "revisions")


class Forge:
    """Runs commands in forked processes, each as its order says; see `_forge` for what an order may hold."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "forge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_same()
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=120)

    def run(self, *arguments: Any, **order: Any) -> dict[str, Any]:
        """One command; its exit code (negative: the signal that ended it), output, seconds, and what else befell it."""
        return self.at_once([{"arguments": list(map(str, arguments)), **order}])[0]

    def at_once(self, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Several commands, begun at the same moment."""
        self._process.stdin.write(json.dumps(orders) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the forge ended; its words are on stderr"
        return json.loads(answer)


class Onlooker:
    """A process that reads a lake the whole time, and must never see anything but a committed version."""

    def __init__(self, lake: Path, *, everything: bool = False, pause: float = 0.0) -> None:
        self._arguments = [str(lake), "all" if everything else "some", str(pause)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "look", *self._arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=_same(),
        )  # fmt: skip
        self._process.stdout.readline()
        self.seen: dict[str, Any] = {}
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        said, errors = self._process.communicate(timeout=300)
        if kind is None:
            assert self._process.returncode == 0, errors
            self.seen = json.loads(said)


def _same() -> dict[str, str]:
    """An environment in which the package is the one that the test imports."""
    import analytics

    return os.environ | {"PYTHONPATH": str(Path(analytics.__file__).parents[1])}


def unsound(lab: Any) -> dict[str, list[Any]]:
    """What the quick checks find in a lake: those of the lines, which need no metrics."""
    from analytics import open_lake

    with open_lake(lab.path) as lake:
        return {name: rows for name in CHECKS if (rows := lake.sql(f"FROM check_{name}").fetchall())}


def _forge() -> None:
    """Each line of stdin is a list of orders.

    arguments: of `runlake`; or ["vacuum", lake], which deletes orphans and replaced files of any age.
    constants: {"module.NAME": value}, set before. kill_after: seconds; whom: driver, group or worker.
    limit: [file-size limit in bytes, None or "module.attribute" from whose first call on it holds].
    uid: who runs it, with every module in `imports` imported by us, since he may not. tells_imports: prints them.
    """
    _import_all()
    for line in sys.stdin:
        orders = json.loads(line)
        for name in (name for order in orders for name in order.get("imports", ())):
            with suppress(ImportError):
                importlib.import_module(name)
        begin_read, begin_write = os.pipe()
        begun = [_begin(order, begin_read, begin_write) for order in orders]
        os.close(begin_read)
        os.close(begin_write)  # the last writer: all of them begin
        print(json.dumps([_end(order, *one) for order, one in zip(orders, begun, strict=True)]), flush=True)  # noqa: T201


def _begin(order: dict[str, Any], begin_read: int, begin_write: int) -> tuple[int, mmap.mmap, int, int]:
    phase = mmap.mmap(-1, 8)
    (out, out_write), (err, err_write) = os.pipe(), os.pipe()  # no files: a limit would hold for them, too
    child = os.fork()
    if child:
        os.close(out_write)
        os.close(err_write)
        return child, phase, out, err
    code = 70
    try:
        os.setsid()
        os.dup2(out_write, 1)
        os.dup2(err_write, 2)
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        os.close(begin_write)
        os.read(begin_read, 1)
        os.close(begin_read)
        code = _do(order, phase)
        if order.get("tells_imports"):
            os.write(1, json.dumps([name for name in sys.modules if name != "__main__"]).encode())
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _do(order: dict[str, Any], phase: mmap.mmap) -> int:
    import resource

    for name, value in order.get("constants", {}).items():
        owner, last = _owner(name)
        setattr(owner, last, value)
    _watch(phase)
    limit = order.get("limit")
    if limit is not None:
        size, at = limit

        def confine() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

        if at is None:
            confine()
        else:
            owner, last = _owner(at)
            real = getattr(owner, last)

            def confined(*arguments: Any, **options: Any) -> Any:
                confine()
                return real(*arguments, **options)

            setattr(owner, last, confined)
    if order.get("uid"):  # no import from here on
        os.setgroups([])
        os.setgid(order["uid"])
        os.setuid(order["uid"])
    arguments = order["arguments"]
    if arguments[0] == "vacuum":
        from analytics.lake import Store

        store = Store.open(arguments[1])
        store.vacuum_orphans()
        store.vacuum_replaced(0)
        return 0
    from analytics import cli

    return cli.run(arguments)


def _owner(name: str) -> tuple[Any, str]:
    path, _, last = name.rpartition(".")
    try:
        return importlib.import_module(path), last
    except ModuleNotFoundError:
        module, _, owner = path.rpartition(".")
        return getattr(importlib.import_module(module), owner), last


def _watch(phase: mmap.mmap) -> None:
    """What the command is doing stands in memory that the forge sees, too."""
    for name, word in (
        ("analytics.ingest.discover", "discover"), ("analytics.lake.Store.vacuum_orphans", "clean"),
        ("analytics.ingest.plan", "plan"), ("analytics.engines.local.Pool.run", "read"),
        ("analytics.compaction._gather", "gather"), ("pyarrow.parquet.ParquetWriter.write_table", "write"),
        ("pyarrow.parquet.ParquetWriter.close", "write"), ("analytics.durable.make_durable", "sync"),
        ("deltalake.DeltaTable.create_write_transaction", "commit"), ("analytics.lake.write_text", "publish"),
        ("analytics.vacuum._delete", "delete"),
    ):  # fmt: skip
        owner, last = _owner(name)
        setattr(owner, last, _noting(getattr(owner, last), PHASES.index(word), phase))


def _noting(real: Any, code: int, phase: mmap.mmap) -> Any:
    def call(*arguments: Any, **options: Any) -> Any:
        before = phase[0]
        phase[0] = code
        try:
            return real(*arguments, **options)
        finally:
            phase[0] = before

    return call


def _end(order: dict[str, Any], child: int, phase: mmap.mmap, out: int, err: int) -> dict[str, Any]:
    began, told = time.monotonic(), {"killed": None, "phase": None}
    after = order.get("kill_after")
    status = None
    while after is not None and status is None and time.monotonic() < began + after:
        time.sleep(min(0.002, after))
        status = _ended(child)
    if after is not None and status is None:
        whom = order.get("whom", "driver")
        workers = _workers(child) if whom == "worker" else []
        if whom != "worker" or workers:
            told = {"killed": whom, "phase": PHASES[phase[0]]}
            if whom == "group":
                os.killpg(child, signal.SIGKILL)
            else:
                os.kill(random.choice(workers) if workers else child, signal.SIGKILL)
    if status is None:
        _, status = os.waitpid(child, 0)
    answer = {"code": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - began, **told}
    if told["killed"] in ("driver", "group") and answer["code"] != -signal.SIGKILL:
        answer |= {"killed": None, "phase": None}  # it had ended in that very moment
    for name, pipe in (("out", out), ("err", err)):
        os.set_blocking(pipe, False)  # a worker that lives on may still hold its other end
        with suppress(BlockingIOError):
            answer[name] = ""
            answer[name] = os.read(pipe, 1 << 16).decode()
        os.close(pipe)
    return answer


def _ended(child: int) -> int | None:
    done, status = os.waitpid(child, os.WNOHANG)
    return status if done else None


def _workers(pid: int) -> list[int]:
    """The pool processes of a command."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


def _import_all() -> None:
    """Everything that a command imports, the late imports too; nothing is started."""
    import deltalake
    import polars as pl
    import pyarrow.parquet as pq

    from analytics import api, cli, compaction, export, ingest, sqlrun, vacuum, worker
    from analytics.commands import facts, progress
    from analytics.engines import local

    assert all((deltalake, pl, pq, api, cli, compaction, export, ingest, sqlrun, vacuum, worker))
    assert all((facts, progress, local))


def _look(path: str, which: str, pause: str) -> None:
    """Reads until stdin ends. Anything but a committed version, whole and sound, ends it with an error."""
    import select

    from analytics import open_lake
    from analytics.sqlfiles import in_layer

    looks, versions = 0, set()
    reports = [report["report"] for report in open_lake(path).reports()] if which == "all" else list(REPORTS)
    checks = [file.name for file in in_layer("checks")] if which == "all" else list(CHECKS)
    print("looking", flush=True)  # noqa: T201
    while not select.select([sys.stdin], [], [], float(pause))[0] or not looks:
        with open_lake(path) as lake:
            _look_once(lake, reports, checks)
            versions |= {lake.version, _look_through_shell(lake, with_views=which == "all")}
        looks += 1
    print(json.dumps({"looks": looks, "versions": sorted(versions)}))  # noqa: T201


def _look_once(lake: Any, reports: list[str], checks: list[str]) -> None:
    committed = _committed(lake, lake.version)
    queries = {"events": "stored_events", "refusals": "stored_refusals"}
    for name, table in queries.items():
        ((found,),) = lake.sql(f"SELECT count(*) FROM {table}").fetchall()
        files = [file for file in lake.store.all_files if f"{file.record}s" == name]
        said = f"{committed[name]} committed, {sum(file.rows for file in files)} in {len(files)} files"
        assert found == committed[name], f"version {lake.version}: {found} {name}, {said}; {lake.history()}"
    for name in checks:
        rows = lake.sql(f"FROM check_{name}").fetchall()
        assert rows == [], f"version {lake.version}: {name}: {rows[:3]}"
    for name in reports:
        lake.report(name).fetchall()


def _look_through_shell(lake: Any, *, with_views: bool) -> int:
    """What the DuckDB shell sees through open.sql and views.sql: the version the former names, whole."""
    import duckdb

    from analytics.sqlfiles import views_sql

    assert (lake.path / "views.sql").read_text() == views_sql()
    with duckdb.connect() as shell:
        shell.execute((lake.path / "open.sql").read_text())
        if with_views:
            shell.execute((lake.path / "views.sql").read_text())
            assert shell.execute("FROM check_lines_of_sources").fetchall() == []
        ((version, events, sources),) = shell.execute(
            "SELECT getvariable('lake_version'), (SELECT count(*) FROM read_parquet(getvariable('event_files'))),"
            " (SELECT count(*) FROM read_parquet(getvariable('source_files')))"
        ).fetchall()
    committed = _committed(lake, version)
    assert (events, sources) == (committed["events"], committed["sources"]), f"open.sql, version {version}: {committed}"
    return int(version)


def _committed(lake: Any, version: int) -> dict[str, int]:
    """Rows that the commits up to a version added and did not remove."""
    commits = [row for row in lake.history() if row["version"] <= version]
    return {
        name: sum((row[f"{name}_added"] or 0) - (row[f"{name}_removed"] or 0) for row in commits)
        for name in ("events", "refusals", "sources")
    }


if __name__ == "__main__":
    {"forge": _forge, "look": _look}[sys.argv[1]](*sys.argv[2:])
