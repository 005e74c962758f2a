"""Whatever is killed, whenever: the next command goes on, and a reader never sees anything but a committed version.

Killed are the ingest (the command, its process group, one of its pool's workers), compact and vacuum. The moments are
spread evenly over what the same command took unkilled; `tests/test_ingest_kill.py` has the moments between two steps.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from helpers import BLOCKED, CANCELED, CLAUDE, CODEX, EXPORTED, GENERIC, LEDGER, RECORDED, TWO_RUNS, Lab
from killing import Forge, Onlooker

from analytics.engines.local import Pool
from analytics.lake import Store
from analytics.tasks import Settings

pytestmark = [pytest.mark.kill, pytest.mark.slow]

BATCHES = {"analytics.batching.BATCH_FILES": 2, "analytics.ingest.TASK_FILES": 1}  # several commits per ingest
POOL = {"analytics.batching.SMALL_BYTES": 0}


class Living(Lab):
    """Sources that live: each round some grow, shrink, move, vanish, are rewritten, copied, packed, or new."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder)
        self.chance = random.Random(seed)
        self.twin = Lab(folder, "twin")  # the lake that is never killed
        self.born = 0
        self.held: dict[Path, bytes] = {}  # what a file will be when it has grown up
        for stream in (CANCELED, EXPORTED, GENERIC, LEDGER, RECORDED, TWO_RUNS):
            self.write(stream.name, stream.read_bytes())
        for _ in range(4):
            self.bear()

    def bear(self) -> None:
        """A new file, the beginning of a run of its own."""
        self.born += 1
        stream, name = self.chance.choice(
            [(CLAUDE, b"night-0412/claude-a"), (CODEX, b"cx-7731"), (BLOCKED, b"run_0n1a")]
        )
        data = stream.read_bytes().replace(name, b"run-%d" % self.born)
        path = self.write(f"{self.chance.choice('abcxyz')}-{self.born}.jsonl", b"")
        self.held[path] = data
        self.grow(path)

    def grow(self, path: Path) -> None:
        """Some more of it, cut anywhere."""
        data, size = self.held[path], path.stat().st_size
        with path.open("ab") as file:
            file.write(data[size : size + self.chance.randrange(1, len(data))])

    def live_on(self, deeds: int = 6) -> None:
        """One round of changes; the first is always a new file, so that there is something to read."""
        self.bear()
        for _ in range(deeds - 1):
            path = self.chance.choice(sorted(self.held))
            deed = self.chance.choice(
                ["grow", "grow", "grow", "bear", "rewrite", "shrink", "move", "copy", "pack", "delete"]
            )
            if deed == "grow":
                self.grow(path)
            elif deed == "bear":
                self.bear()
            elif deed == "rewrite":
                self.held[path] = self.held[path].replace(b'"output_tokens":8', b'"output_tokens":9')
                path.write_bytes(self.held[path])
            elif deed == "shrink":
                path.write_bytes(self.held[path][: self.chance.randrange(len(self.held[path]))])
            elif deed == "move":
                self.held[path.rename(path.with_name(f"moved-{path.name}"))] = self.held.pop(path)
            elif deed == "copy":
                shutil.copy(path, path.with_name(f"copy-{path.name}"))
            elif deed == "pack":
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
            elif len(self.held) > 3:
                path.unlink()
                del self.held[path]


def ingest_of(lab: Lab, *more: str) -> list[str]:
    return ["ingest", str(lab.sources), "--lake", str(lab.path), *more]


def finish(forge: Forge, arguments: list[str], **order) -> float:
    """A command that is not killed; its seconds."""
    done = forge.run(*arguments, **order)
    assert done["code"] == 0, done["err"]
    return done["seconds"]


def strays(root: Path) -> set[str]:
    """Files in the lake's folder that neither its newest version nor the lake itself needs."""
    store = Store.open(root)
    needed = {file.relative for file in store.all_files}
    log = {str(path.relative_to(root)) for path in root.glob("_delta_log/*")}
    committed = {path for path in log if path.endswith((".json", ".checkpoint.parquet", "_last_checkpoint"))}
    removed = {row["path"] for row in removed_files(root)}
    every = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and "_facts" not in path.parts}
    return every - needed - committed - removed - {".lock", "runlake.json", "open.sql", "views.sql"}


def removed_files(root: Path) -> list[dict]:
    """Files of older versions, as the log names them; they stay until their retention is over."""
    entries = [json.loads(line) for path in root.glob("_delta_log/*.json") for line in path.open(encoding="utf-8")]
    return [entry["remove"] for entry in entries if "remove" in entry]


def kill_ingests(tmp_path: Path, kills: int, *, everything: bool, compact_every: int) -> Counter[str]:
    """So many kills of ingests into one lake, each begun again; where they fell."""
    lab = Living(tmp_path, seed=kills)
    chance = random.Random(kills)
    fell: Counter[str] = Counter()
    with Forge() as forge:
        seconds = {False: 0.0, True: 0.0}
        for is_pool in (False, True):  # what an ingest of a round takes, alone and with a pool
            lab.live_on()
            more = (["--jobs", "2"], BATCHES | POOL) if is_pool else ([], BATCHES)
            seconds[is_pool] = finish(forge, ingest_of(lab, *more[0]), constants=more[1])
            finish(forge, ingest_of(lab.twin))
        with Onlooker(lab.path, everything=everything, pause=0.0 if everything else 2.0) as onlooker:
            done = rounds = 0
            while done < kills:
                lab.live_on()
                for _ in range(chance.choice([2, 3, 3])):  # the one that goes on may be killed, too
                    whom = chance.choices(["driver", "group", "worker"], [8, 1, 1])[0]
                    more = ([], BATCHES) if whom == "driver" else (["--jobs", "2"], BATCHES | POOL)
                    told = forge.run(
                        *ingest_of(lab, *more[0]), constants=more[1], whom=whom,
                        kill_after=chance.uniform(0, seconds[whom != "driver"]),
                    )  # fmt: skip
                    if told["killed"] is None:
                        assert told["code"] == 0, told["err"]
                        fell["missed"] += 1
                        continue
                    done += 1
                    fell[told["phase"]] += 1
                    if whom == "worker":
                        assert told["code"] in (0, 1), told  # 0: its work was done already
                        lost = "a worker process ended before its work was done" in told["err"]
                        assert lost is (told["code"] == 1), told
                    else:
                        assert told["code"] == -9, told
                finish(forge, ingest_of(lab), constants=BATCHES)
                finish(forge, ingest_of(lab.twin))
                rounds += 1
                if rounds % 2 == 0 or done >= kills:
                    assert lab.content() == lab.twin.content(), f"after {done} kills; {fell}"
                if compact_every and rounds % compact_every == 0:
                    compact = ["compact", "--lake", str(lab.path)]
                    for _ in range(3):
                        told = forge.run(*compact, kill_after=chance.uniform(0, 0.5))
                        fell["compact " + (told["phase"] or "missed")] += 1
                    finish(forge, compact)
                    assert lab.content() == lab.twin.content(), f"compacted after {done} kills; {fell}"
        time.sleep(1)  # orphaned workers notice within half a second that nobody waits for them
        finish(forge, ingest_of(lab))
    assert strays(lab.path) == set()
    if everything:
        assert lab.failed_checks() == {}
    assert onlooker.seen["looks"] >= 2, onlooker.seen
    assert len(onlooker.seen["versions"]) >= 2, onlooker.seen
    assert fell["missed"] <= 3 * kills, fell  # one that goes on has less to do than the one it follows
    return fell


def test_ten_kills_at_any_moment_lose_nothing_and_show_nothing_half_done(tmp_path):
    fell = kill_ingests(tmp_path, 10, everything=False, compact_every=0)
    print(fell)  # noqa: T201 (pytest -s shows where the kills fell)
    assert len(set(fell) - {"missed"}) >= 2, fell


@pytest.mark.long
def test_a_hundred_kills_at_any_moment_lose_nothing_and_show_nothing_half_done(tmp_path):
    fell = kill_ingests(tmp_path, 100, everything=True, compact_every=5)
    print(fell)  # noqa: T201 (pytest -s shows where the kills fell)
    assert len(set(fell) - {"missed"}) >= 5, fell


FEW = pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.long)])
MANY = pytest.mark.parametrize("kills", [pytest.param(50, marks=pytest.mark.long)])


def killed_at(forge: Forge, kills: int, arguments: list[str], seconds: float, order: dict) -> list[str]:
    """Where the kills fell that were spread evenly over so many seconds; for one lake each, `{}` in the arguments."""
    fell = []
    for number in range(kills):
        told = forge.run(
            *(one.format(number) for one in arguments), kill_after=seconds * (number + 0.5) / kills, **order
        )
        assert told["code"] in (0, -9), told
        fell.append(told["phase"] or "missed")
    print(Counter(fell))  # noqa: T201
    return fell


@MANY
def test_the_making_of_a_lake_is_killed(tmp_path, forge, kills):
    lab = Living(tmp_path, seed=1)
    seconds = finish(forge, ingest_of(lab.twin), constants=BATCHES)
    arguments = ["ingest", str(lab.sources), "--lake", str(tmp_path / "lake-{}")]
    fell = killed_at(forge, kills, arguments, seconds, {"constants": BATCHES})
    assert fell.count("missed") < kills / 2
    wanted = lab.twin.content()
    for number in range(kills):
        again = Lab(tmp_path, f"lake-{number}")
        finish(forge, ingest_of(again), constants=BATCHES)
        assert again.content() == wanted, f"killed in {fell[number]}"
        assert strays(again.path) == set()


@pytest.fixture(scope="module")
def forge():
    with Forge() as made:
        yield made


@pytest.fixture(scope="module")
def grown(tmp_path_factory, forge):
    """A lake of many small commits, in which sources grew, moved, were rewritten and vanished. Tests copy it."""
    lab = Living(tmp_path_factory.mktemp("grown"), seed=2)
    for _ in range(4):
        lab.live_on()
        finish(forge, ingest_of(lab), constants=BATCHES)
    return lab


@FEW
def test_compact_is_killed(tmp_path, grown, forge, kills):
    """Before, after and between: the rows are the same, and what the killed one wrote is cleared away."""
    wanted = grown.content()
    for number in range(kills + 1):
        shutil.copytree(grown.path, tmp_path / f"lake-{number}")
    seconds = finish(forge, ["compact", "--lake", str(tmp_path / f"lake-{kills}")])
    fell = killed_at(forge, kills, ["compact", "--lake", str(tmp_path / "lake-{}")], seconds, {})
    assert fell.count("missed") < kills / 2
    for number in range(kills):
        one = Lab(tmp_path, f"lake-{number}")
        assert one.content() == wanted, f"killed in {fell[number]}"
        finish(forge, ["compact", "--vacuum", "--lake", str(one.path)])
        assert one.content() == wanted, f"compacted after a kill in {fell[number]}"
        assert strays(one.path) == set()


@MANY
def test_vacuum_is_killed(tmp_path, grown, forge, kills):
    """What no version needs goes, sooner or later; what the newest needs never does."""
    lab = Lab(tmp_path)
    shutil.copytree(grown.path, lab.path)
    finish(forge, ["compact", "--lake", str(lab.path)])
    wanted = lab.content()
    for number in range(40):
        orphan = (
            lab.path / f"record=event/wire=metaharness/19990101T000000000000Z-00000{number % 10}-{number:05d}.parquet"
        )
        orphan.write_bytes(b"PAR1")
    for number in range(kills + 1):
        shutil.copytree(lab.path, tmp_path / f"lake-{number}")
    seconds = finish(forge, ["vacuum", str(tmp_path / f"lake-{kills}")])
    fell = killed_at(forge, kills, ["vacuum", str(tmp_path / "lake-{}")], seconds, {})
    assert fell.count("missed") < kills / 2
    for number in range(kills):
        one = Lab(tmp_path, f"lake-{number}")
        assert one.content() == wanted, f"killed in {fell[number]}"
        finish(forge, ["vacuum", str(one.path)])
        store = Store.open(one.path)
        assert {str(path.relative_to(one.path)) for path in one.path.glob("record=*/*/*.parquet")} == {
            file.relative for file in store.all_files
        }


def test_a_worker_killed_while_it_counts_holds_nobody_up(tmp_path):
    """The counters of the pool have a lock; who dies with it in hand never gives it back."""
    told = []
    with Pool(2, Settings(str(tmp_path), "20260101T000000000000Z-000000")) as pool:
        worker = os.fork()
        if not worker:
            pool._shared[0].get_lock().acquire()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(worker, 0)
        telling = threading.Thread(
            target=pool._tell, args=(lambda done, lines: told.append((done, lines)),), daemon=True
        )
        telling.start()
        telling.join(20)
    assert told == [(0, 0)]
