"""What all measurements share: one process run to its end, the best of several, and the machine they ran on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNLAKE = (sys.executable, "-m", "analytics")
LIBRARIES = ("duckdb", "polars", "pyarrow", "msgspec", "numpy", "deltalake")


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process and its children cost, as the kernel tells it. Peak memory is that of the largest of them."""

    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    stdout: str = ""
    error: str = ""

    def better(self, other: Measured | None) -> Measured:
        """The least of each: wall, CPU and memory of the two."""
        if other is None:
            return self
        return Measured(
            min(self.wall_seconds, other.wall_seconds), min(self.cpu_seconds, other.cpu_seconds),
            max(self.peak_mib, other.peak_mib), self.stdout, self.error,
        )  # fmt: skip


def run_process(
    command: Iterable[str | Path], *, environment: Mapping[str, str] | None = None, may_fail: bool = False
) -> Measured:
    """Run one process to its end, apart from this one. Its peak memory begins at what this process uses, which is
    therefore little: what loads libraries or data is a process of its own.

    Ends this program with what the process said if it fails, unless it may; then `error` is the last line it said.
    """
    argv = [str(part) for part in command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, err.fileno(), 2)]
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        began = time.perf_counter()
        pid = os.posix_spawn(
            argv[0], argv, os.environ | {"PYTHONPATH": paths} | (environment or {}), file_actions=streams
        )
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - began
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode(errors="replace"))
    code = os.waitstatus_to_exitcode(status)
    if code and not may_fail:
        raise SystemExit(f"{' '.join(argv)} ended with status {code}: {said[1].strip()[-2_000:]}")
    lines = said[1].strip().splitlines() or [f"ended with status {code}"]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    error = (raised or lines)[-1][:160] if code else ""
    return Measured(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said[0], error)


def best_of(repeat: int, programs: Mapping[str, Callable[[], Measured]]) -> dict[str, Measured]:
    """The programs in turn, `repeat` times, so that a noisy machine harms all alike: of each the least wall and CPU
    seconds, and the most memory.
    """
    best: dict[str, Measured] = {}
    for _ in range(repeat):
        for name, program in programs.items():
            best[name] = program().better(best.get(name))
    return best


def bytes_below(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else (file for file in path.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files)


def machine() -> dict[str, str]:
    """What the figures depend on: processor, cores, memory, kernel, versions."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    mhz = [line.partition(":")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if line[:7] == "cpu MHz"]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "processor": model + (f", {float(mhz[0]):,.0f} MHz" if mhz else ""),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in LIBRARIES)]
        ),
        "commit": commit or "unknown",
    }
