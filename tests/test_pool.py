"""The processes of an ingest: they end with their driver, however it ends, and a script without a guard is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import CORPUS, ROOT

from analytics import open_lake

DRIVER = """
import sys
from analytics import batching
batching.SMALL_BYTES, batching.TASK_FILES = 0, 1
from analytics.cli import main
if __name__ == "__main__":
    sys.argv = ["runlake", "ingest", sys.argv[1], "--lake", sys.argv[2], "--jobs", "2"]
    main()
"""
UNGUARDED = """
from analytics import batching
batching.SMALL_BYTES, batching.TASK_FILES = 0, 1
from analytics.ingest import ingest
ingest({lake!r}, [{source!r}], jobs=2)
"""
FEW_SECONDS = 15


def workers(mark: str) -> list[int]:
    """The processes whose environment has the mark, but for ourselves."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it has ended
            continue
    return [pid for pid in found if pid != os.getpid()]


def wait_for(condition, seconds=FEW_SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def begun(tmp_path):
    """Begins an ingest with two processes, in a session of its own, and waits until one of them is there."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    started = []

    def begin(delay):
        mark = f"RUNLAKE_TEST_MARK={tmp_path}-{len(started)}"
        name, value = mark.split("=", 1)
        driver = subprocess.Popen(
            [sys.executable, str(script), str(CORPUS), str(tmp_path / f"lake{len(started)}")],
            env=os.environ | {name: value, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip
        started.append((driver, mark))
        assert wait_for(lambda: len(workers(mark)) > 1 or driver.poll() is not None)
        time.sleep(delay)
        return driver, mark

    yield begin
    for driver, mark in started:
        for pid in workers(mark):
            os.kill(pid, signal.SIGKILL)
        driver.wait()


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGHUP])
def test_no_process_outlives_a_driver_that_is_killed_while_they_start(begun, sent, delay):
    driver, mark = begun(delay)
    os.kill(driver.pid, sent)
    assert wait_for(lambda: not workers(mark))


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.15, 0.3])
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_driver_that_is_asked_to_end_does_so_at_once_and_without_a_traceback(begun, sent, code, delay):
    driver, mark = begun(delay)
    if sent == signal.SIGINT:
        os.killpg(driver.pid, sent)  # as a terminal does
    else:
        os.kill(driver.pid, sent)
    _, err = driver.communicate(timeout=FEW_SECONDS)
    assert driver.returncode in (code, 0)  # 0: it was done before
    assert "Traceback" not in err
    assert wait_for(lambda: not workers(mark))


def test_a_script_without_a_guard_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.format(lake=str(tmp_path / "lake"), source=str(CORPUS)))
    done = subprocess.run(
        [sys.executable, str(script)], env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "ingest was called inside a worker process" in done.stderr
    assert "under `if __name__ == '__main__':` (or jobs=1)" in done.stderr.splitlines()[-1]
    with open_lake(tmp_path / "lake") as lake:
        assert lake.sql("SELECT count(*) FROM events").fetchall() == [(0,)]
