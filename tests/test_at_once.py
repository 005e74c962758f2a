"""Several commands on one lake at the same moment: each lands or waits, no line comes twice, the checks hold."""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from pathlib import Path

import pytest
from helpers import CLAUDE, CODEX, RECORDED, Lab
from killing import Forge, Onlooker, unsound

from analytics.ingest import ingest
from analytics.lake import Store

pytestmark = pytest.mark.slow

BATCHES = {"analytics.batching.BATCH_FILES": 2, "analytics.ingest.TASK_FILES": 1}
TURNS = pytest.mark.parametrize("turns", [1, pytest.param(20, marks=pytest.mark.long)])


def fill(lab: Lab, folder: str, count: int) -> None:
    """So many runs of their own."""
    for number in range(count):
        data = CLAUDE.read_bytes().replace(b"night-0412/claude-a", f"{folder}-{number}".encode())
        lab.write(f"{folder}/{number}.jsonl", data)


def facts(answer: dict) -> dict:
    """The closing table of an ingest."""
    assert answer["code"] == 0, answer["err"]
    return json.loads(answer["out"])[0]


@TURNS
def test_ingests_at_once_bring_each_line_once(tmp_path, turns):
    """Begun at the same moment, where there is no lake yet: of the same files, and of others."""
    with Forge() as forge:
        for turn in range(turns):
            lab = Lab(tmp_path / str(turn))
            for folder in "abc":
                fill(lab, folder, 3)
            paths = [lab.sources, lab.sources, lab.sources / "a", lab.sources / "b"]
            orders = [
                {"arguments": ["ingest", str(path), "--lake", str(lab.path), "--format", "json"], "constants": BATCHES}
                for path in paths
            ]
            told = [facts(answer) for answer in forge.at_once(orders)]
            alone = Lab(tmp_path / str(turn), "alone")
            alone.ingest()
            assert lab.content() == alone.content()
            assert sum(int(one["files_new"]) for one in told) == 9, "each file was new to one of them"
            assert lab.sql("SELECT count(*), count(DISTINCT (source_id, line, part)) FROM stored_events") == [
                (9 * 42, 9 * 42)
            ]
            assert lab.sql("SELECT max(revision) FROM sources") == [(1,)]
            assert Store.open(lab.path).vacuum_orphans() == []
            assert unsound(lab) == {}


@TURNS
def test_ingest_beside_compact_beside_vacuum_beside_a_reader(tmp_path, turns):
    lab, alone = Lab(tmp_path), Lab(tmp_path, "alone")
    fill(lab, "first", 4)
    with Forge() as forge:
        assert forge.run("ingest", lab.sources, "--lake", lab.path, constants=BATCHES)["code"] == 0
        with Onlooker(lab.path, pause=0.5) as onlooker:
            for turn in range(turns):
                fill(lab, f"turn{turn}", 3)
                orders = [
                    {"arguments": ["ingest", str(lab.sources), "--lake", str(lab.path)], "constants": BATCHES},
                    {"arguments": ["compact", "--vacuum", "--lake", str(lab.path)]},
                    {"arguments": ["compact", "--lake", str(lab.path)]},
                    {"arguments": ["ingest", str(lab.sources), "--lake", str(lab.path)], "constants": BATCHES},
                ]
                for answer in forge.at_once(orders):
                    assert answer["code"] == 0, answer["err"]
    alone.ingest()
    assert lab.content() == alone.content()
    assert onlooker.seen["looks"] >= 1
    assert Store.open(lab.path).vacuum_orphans() == []


def hold(root: Path, ready, go) -> None:
    """Another writer, for as long as it takes."""
    with Store.open(root).lock():
        ready.set()
        go.wait(60)


def test_who_waited_looks_again_at_what_there_is_to_read(tmp_path):
    """What was found before the wait is old; the file that grew would seem to have shrunk, and all be read again."""
    lab = Lab(tmp_path)
    path = lab.write("a.jsonl", CLAUDE.read_bytes()[:4000])
    lab.ingest()
    context = multiprocessing.get_context("spawn")
    ready, go = context.Event(), context.Event()
    holder = context.Process(target=hold, args=(lab.path, ready, go))
    holder.start()
    assert ready.wait(60)
    said: list[str] = []
    reports = []
    waiting = threading.Thread(target=lambda: reports.append(ingest(lab.path, [lab.sources], on_wait=said.append)))
    waiting.start()
    while not said:
        time.sleep(0.01)
    path.write_bytes(CLAUDE.read_bytes())
    lab.write("b.jsonl", CODEX.read_bytes())
    go.set()
    waiting.join(60)
    holder.join(60)
    assert (reports[0].files_grown, reports[0].files_rewritten, reports[0].files_new) == (1, 0, 1)


def test_what_another_ingest_read_further_is_read_on_and_not_again(tmp_path):
    lab = Lab(tmp_path)
    path = lab.write("a.jsonl", RECORDED.read_bytes()[:3000])
    lab.ingest()
    path.write_bytes(RECORDED.read_bytes())
    command = ["ingest", str(lab.sources), "--lake", str(lab.path), "--format", "json"]
    with Forge() as forge:
        told = [facts(answer) for answer in forge.at_once([{"arguments": command}] * 4)]
    assert sorted(int(one["files_grown"]) for one in told) == [0, 0, 0, 1]
    assert {int(one["files_rewritten"]) for one in told} == {0}
    assert lab.sql("SELECT max(revision) FROM sources") == [(2,)]
