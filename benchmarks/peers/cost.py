"""What each command costs: wall time, CPU, and memory, on the same home.

Every measurement is a process of its own, whose user and system time (its children's included) and largest resident
set the kernel reports when it ends. The sum over a command's processes is sampled beside it: a worker pool would
otherwise look as small as one worker.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from homes import transcripts
from tools import Agentsview, Ccusage, Runlake, environment

SAMPLE_SECONDS = 0.02
IDLE_SHARE = 0.1
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True, slots=True)
class Cost:
    """One command's best repetition.

    `all_mib` is a sum of resident sets: what they share counts once for each. `others` is the share of all cores that
    something else used right before or after, whichever is more.
    """

    name: str
    wall: float
    cpu: float
    largest_mib: float
    all_mib: float
    others: float = 0


@dataclass(frozen=True, slots=True)
class Command:
    """What is timed. `fresh` names a folder that must not be there when it starts."""

    name: str
    words: list[str]
    variables: dict[str, str]
    fresh: Path | None = None


def commands(scratch: Path, ccusage: Ccusage, agentsview: Agentsview) -> list[Command]:
    """All commands of one repetition, in the order in which each finds what it needs."""
    runlake = Runlake()
    ours, theirs = runlake.variables(scratch), agentsview.variables(scratch)
    sections = ccusage.report("daily", "--by-agent", "--sections", "daily,weekly,monthly,session")
    return [
        Command("ccusage daily (one full report)", ccusage.report("daily"), {}),
        Command("ccusage daily, weekly, monthly, session in one", sections, {}),
        Command("runlake ingest, new lake", runlake.ingest(), ours, scratch / "lake"),
        Command("runlake ingest, nothing new", runlake.ingest(), ours),
        *(
            Command(f"runlake report {name}", runlake.report(name), ours)
            for name in ("token_usage_by_day", "token_usage_by_run", "overview")
        ),
        Command("agentsview sync, new database", agentsview.sync(), theirs, scratch / "agentsview"),
        Command("agentsview sync, nothing new", agentsview.sync(), theirs),
        Command("agentsview usage daily", agentsview.usage(), theirs),
    ]


def _family(pid: int) -> Iterator[int]:
    yield pid
    for thread in os.listdir(f"/proc/{pid}/task"):
        for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
            yield from _family(int(child))


def _resident_mib(pid: int) -> float:
    """The resident sets of a process and all its descendants; 0 if it has just ended or there is no /proc."""
    try:
        return sum(int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in _family(pid)) * PAGE_MIB
    except (OSError, IndexError):
        return 0


def run(command: Command, home: Path) -> Cost:
    """Run one command to its end, its output going nowhere."""
    if command.fresh:
        shutil.rmtree(command.fresh, ignore_errors=True)
    seen = [0.0]
    ended = threading.Event()
    began = time.perf_counter()
    pid = os.posix_spawn(
        "/usr/bin/env",
        ["env", "-C", str(home), *command.words],
        environment(home) | command.variables,
        file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)],
    )

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            seen.append(_resident_mib(pid))

    sampler = threading.Thread(target=sample)
    sampler.start()
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    ended.set()
    sampler.join()
    if status:
        raise SystemExit(f"{command.name} ended with status {os.waitstatus_to_exitcode(status)}")
    largest = usage.ru_maxrss / 1024
    return Cost(command.name, wall, usage.ru_utime + usage.ru_stime, largest, max(largest, *seen))


def busy_share(seconds: float = 1) -> float:
    """How much of all cores something else uses now; the load average would still tell of what has long ended."""
    first = _ticks()
    time.sleep(seconds)
    then = _ticks()
    return 1 - (then[1] - first[1]) / (then[0] - first[0])


def _ticks() -> tuple[int, int]:
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return sum(ticks), ticks[3] + ticks[4]  # idle, and waiting for a disk


def wait_for_calm(patience: float) -> float:
    """Let at most `patience` seconds pass until nothing else uses the cores; returns what still does."""
    until = time.monotonic() + patience
    while (others := busy_share()) > IDLE_SHARE and time.monotonic() < until:
        pass
    return others


def measure(home: Path, plan: list[Command], repeat: int, patience: float) -> list[Cost]:
    """All commands in turn, `repeat` times; of each the repetition with the least wall time.

    The files are read once before, so that every command finds them in the page cache.
    """
    for file in transcripts(home):
        file.read_bytes()
    best: dict[str, Cost] = {}
    for _ in range(repeat):
        for command in plan:
            before = wait_for_calm(patience)
            made = run(command, home)
            made = replace(made, others=max(before, busy_share()))
            if command.name not in best or made.wall < best[command.name].wall:
                best[command.name] = made
    return list(best.values())
