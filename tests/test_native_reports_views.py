"""The same work seen through two wires: both views stay visible, one of them counts, and they name each other.

Of a session's views the one that knows more counts: a harness run, then a rollout or a capture that saw its result,
then a session file or an exec capture, then a capture that was cut. Each scene is read in one lake and its files in the
other order in another.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import BLOCKED, CLAUDE
from native_make import HAIKU, SONNET, Capture, Exec, File, Rollout, Session, model_usage, tool, usage
from native_read import Answers

HARNESS_SESSION, HARNESS_RUN = b"5f0c-aa", b"night-0412/claude-a"
LAB_SESSION, LAB_RUN = b"7a1e4c00-0000-4000-8000-00000000c0de", b"run_0n1aclaude"


def session(k: str) -> Session:
    """Two answers, the outputs of which add up to 70 as stored; one call."""
    one = Session(f"{k}-s").user().answer(f"{k}-m1", usage(5, 30, read=100), tool(f"{k}-c"), stop="tool_use")
    return one.result(f"{k}-c").answer(f"{k}-m2", usage(6, 40, read=120))


def capture(k: str, *, result: bool = True) -> Capture:
    """The same answers as the process printed them; its result knows a title made by a small model, too."""
    one = Capture(f"{k}-s").init().answer(f"{k}-m1", usage(5, 2, read=100), tool(f"{k}-c")).reply(f"{k}-c")
    one.answer(f"{k}-m2", usage(6, 1, read=120))
    models = {SONNET: model_usage(11, 75, read=220, cost=0.4), HAIKU: model_usage(300, 9, cost=0.1)}
    return one.ended(usage(11, 75, read=220), models) if result else one


def resumed(k: str) -> Capture:
    """Another process of the session, with totals of its own."""
    one = Capture(f"{k}-s", process=2).init().answer(f"{k}-m3", usage(2, 1))
    return one.ended(usage(2, 25), {SONNET: model_usage(2, 25)})


def subagent(k: str) -> Session:
    """An answer of 11 with a call, in a file of its own."""
    one = Session(f"{k}-s", agent="b7", start=20).user()
    one.answer(f"{k}-n", usage(4, 11), tool(f"{k}-d"), stop="tool_use", model=HAIKU)
    return one.result(f"{k}-d")


def with_subagent(k: str) -> Capture:
    """A capture in the total of which the subagent is."""
    one = Capture(f"{k}-s").init().answer(f"{k}-m1", usage(5, 2, read=100), tool(f"{k}-c", "Task"))
    one.answer(f"{k}-n", usage(4, 1), tool(f"{k}-d"), under=f"{k}-c", model=HAIKU).reply(f"{k}-d", under=f"{k}-c")
    one.reply(f"{k}-c").answer(f"{k}-m2", usage(6, 1, read=120))
    return one.ended(usage(11, 75, read=220), {SONNET: model_usage(11, 75, read=220), HAIKU: model_usage(4, 11)})


def rollout(k: str) -> Rollout:
    one = Rollout(f"{k}-t").turn(f"{k}-u1").call(f"{k}-c").output(f"{k}-c").spend(1000, 400, 30)
    return one.spend(1500, 900, 40).done(f"{k}-u1")


def executed(k: str) -> Exec:
    return Exec(f"{k}-t").turn().command("item_0").say("item_1").done(2500, 1300, 70)


def harness(k: str) -> bytes:
    """A metaharness run of 811 output tokens that names the agent's session."""
    return CLAUDE.read_bytes().replace(HARNESS_SESSION, f"{k}-s".encode()).replace(HARNESS_RUN, f"{k}-h".encode())


def lab(k: str) -> bytes:
    """A Harness Lab run that names the session and the ids of its messages."""
    data = BLOCKED.read_bytes().replace(LAB_SESSION, f"{k}-s".encode()).replace(LAB_RUN, f"{k}-h".encode())
    return data.replace(b'"msg_', f'"{k}-msg_'.encode())


def session_of(data: bytes, k: str) -> Session:
    """The session file of a Harness Lab run: an answer for each message it names."""
    one = Session(f"{k}-s").user()
    for row in map(json.loads, data.splitlines()):
        if row["name"] == "message_usage":
            one.answer(row["payload"]["message_id"], usage(9, 100, write=4100))
    return one


SCENES: dict[str, Callable[[str], list[File | bytes]]] = {
    "capture": lambda k: [session(k), capture(k)],
    "cut": lambda k: [session(k), capture(k, result=False)],
    "thread": lambda k: [rollout(k), executed(k)],
    "threads": lambda k: [
        Exec(f"{k}-t").turn().done(2500, 1300, 70),
        Exec(f"{k}-t").turn().done(3200, 1900, 79),
        rollout(k).turn(f"{k}-u2").spend(700, 600, 9).done(f"{k}-u2"),
    ],
    "resumed": lambda k: [capture(k), resumed(k), session(k).answer(f"{k}-m3", usage(2, 20))],
    "harness": lambda k: [harness(k), session(k)],
    "three": lambda k: [session(k), capture(k), harness(k)],
    "lab": lambda k: [lab(k), session_of(lab(k), k)],
    "lab alone": lambda k: [lab(k)],
    "subagent": lambda k: [session(k), subagent(k)],
    "subagent in a capture": lambda k: [session(k), subagent(k), with_subagent(k)],
    "subagent of a harness": lambda k: [subagent(k), harness(k), session(k)],
    "later": lambda k: [capture(k), session(k).answer(f"{k}-m3", usage(7, 500))],
    "history": lambda k: [session(k).copy(f"{k}-s2").answer(f"{k}-m9", usage(1, 5)), session(k)],
}


@pytest.fixture(scope="module", params=["in order", "turned"])
def lake(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("views")
    batches: list[list[Path]] = []
    for scene, make in SCENES.items():
        k = scene.replace(" ", "-")
        files = make(k)
        for place, file in enumerate(files if request.param == "in order" else reversed(files)):
            path = folder / "in" / k / f"{place}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file if isinstance(file, bytes) else file.data)
            batches += [[]] * (place == len(batches))
            batches[place] = [*batches[place], path]
    got = Answers.of(folder, *batches)
    yield got
    got.lake.close()


def scene(lake: Answers, name: str) -> Answers:
    own = {row["run_id"] for row in lake.events if f"/in/{name.replace(' ', '-')}/" in row["path"]}
    return lake.only(own.__contains__)


def views(got: Answers) -> dict[str, tuple[bool, str | None]]:
    """By wire: does the view count, and through which wire is the work seen too?"""
    wires = {row["run_id"]: row["wire"] for row in got.runs}
    assert len(set(wires.values())) == len(wires), "one run a wire"
    return {row["wire"]: (row["is_counted"], wires.get(row["same_run_as"])) for row in got.runs}


def counted(got: Answers) -> list[tuple[str, bool]]:
    return sorted((row["wire"], row["is_counted"]) for row in got.runs)


def figures(got: Answers, *names: str) -> tuple[Any, ...]:
    return tuple(got.total(name) for name in names)


def test_a_session_file_and_its_capture(lake):
    """The capture saw the result, so its totals count, side calls included; 154 would be both, 3 its rows."""
    got = scene(lake, "capture")
    assert views(got) == {"claude-stream": (True, "claude-code"), "claude-code": (False, "claude-stream")}
    assert figures(got, "uncached_input_tokens", "output_tokens", "tool_calls") == (311, 84, 1)
    assert got.total("cost_usd") == pytest.approx(0.5)


def test_a_session_file_and_a_capture_that_was_cut(lake):
    """Without a result the capture's outputs are what answers began with; the session file counts."""
    got = scene(lake, "cut")
    assert views(got) == {"claude-stream": (False, "claude-code"), "claude-code": (True, "claude-stream")}
    assert figures(got, "requests", "output_tokens", "tool_calls") == (2, 70, 1)


def test_a_rollout_and_the_exec_capture_of_its_thread(lake):
    """The rollout knows requests, times and the model; the capture shows the same total, which would make 140."""
    got = scene(lake, "thread")
    assert views(got) == {"codex-rollout": (True, "codex-exec"), "codex-exec": (False, "codex-rollout")}
    assert figures(got, "requests", "input_tokens", "output_tokens", "tool_calls") == (2, 2500, 70, 1)


def test_two_exec_captures_of_a_thread_and_its_rollout(lake):
    """A resumed thread: one rollout, a capture for each process. The rollout alone counts."""
    got = scene(lake, "threads")
    assert counted(got) == [("codex-exec", False), ("codex-exec", False), ("codex-rollout", True)]
    assert figures(got, "requests", "output_tokens") == (3, 79)


def test_two_captures_of_a_session_and_its_file(lake):
    """`--resume` prints the session's id again: two processes, each with a total of its own, of one session file."""
    got = scene(lake, "resumed")
    assert counted(got) == [("claude-code", False), ("claude-stream", True), ("claude-stream", True)]
    assert figures(got, "output_tokens") == (84 + 25,)


def test_a_harness_run_and_the_session_it_names(lake):
    """metaharness names the agent's session; the run counts with its 811, not with the session's 70 beside it."""
    got = scene(lake, "harness")
    assert views(got) == {"metaharness": (True, "claude-code"), "claude-code": (False, "metaharness")}
    assert figures(got, "output_tokens", "requests") == (811, 4)


def test_a_harness_run_its_session_and_a_capture(lake):
    """Three views: the harness run counts, the others say whose work they show."""
    got = scene(lake, "three")
    assert counted(got) == [("claude-code", False), ("claude-stream", False), ("metaharness", True)]
    named = {row["same_run_as"] for row in got.runs if not row["is_counted"]}
    assert named == {row["run_id"] for row in got.runs if row["is_counted"]}
    assert figures(got, "output_tokens") == (811,)


def test_harness_lab_events_and_the_session_with_their_messages(lake):
    """Harness Lab names the session and its message ids; the same ids in the session file count no second time."""
    got = scene(lake, "lab")
    assert views(got) == {"harness-lab": (True, "claude-code"), "claude-code": (False, "harness-lab")}
    names = ("requests", "input_tokens", "output_tokens", "tool_calls", "denied_calls")
    assert figures(got, *names) == figures(scene(lake, "lab alone"), *names)


def test_a_subagent_is_no_view_of_its_session(lake):
    """Its requests are in no other file: they count beside the session."""
    got = scene(lake, "subagent")
    assert got.by_run("output_tokens") == {"subagent-s": 70, "subagent-s/b7": 11}
    assert {row["same_run_as"] for row in got.runs} == {None}
    assert got.run["subagent-s/b7"]["parent_run_id"] == "subagent-s"


@pytest.mark.parametrize(
    ("name", "output", "calls"), [("subagent in a capture", 86, 2), ("subagent of a harness", 811, 5)]
)
def test_a_subagent_of_a_session_that_another_view_counts(lake, name, output, calls):
    """The other view's total has the subagent in it: 11 more would be twice."""
    got = scene(lake, name)
    assert figures(got, "output_tokens", "tool_calls") == (output, calls)
    assert [row["is_counted"] for row in got.runs if row["wire"] == "claude-code"] == [False, False]


def test_a_session_that_goes_on_after_its_capture(lake):
    """What the capture's process never saw is not lost: 84 of the capture, 500 of the session."""
    got = scene(lake, "later")
    assert figures(got, "output_tokens", "tool_calls") == (584, 1)


def test_a_resumed_copy_is_no_second_view(lake):
    """What is shared belongs to the original, the rest counts."""
    got = scene(lake, "history")
    assert got.by_run("output_tokens") == {"history-s": 70, "history-s2": 5}
    assert {row["same_run_as"] for row in got.runs} == {None}


def test_sums_agree(lake):
    assert lake.sums_disagree() == []


def test_nothing_is_wrong_with_the_lake(lake):
    """The sample run of metaharness has no result of a call that nobody requested; neither has anything else."""
    assert {name: rows for name, found in lake.lake.check().items() if (rows := found.fetchall())} == {}
