"""The Codex rollout wire on its own: rows in, event rows out. Answers are worked out by hand; each names what is wrong
without its rule. Trap numbers are those of the field notes on native transcripts.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from helpers import Reader, check_conservation, rebuild

from analytics.refusals import NAMES
from analytics.schema import EVENT, KINDS, TOPICS, USAGE_SCOPES
from analytics.wires.base import Context, Sample, key64
from analytics.wires.codex_rollout import WIRE
from analytics.wires.codex_rollout_lines import BARE_ITEMS, EVENTS, HEADER, ITEMS, STATE_MARKER, TYPES, Payload
from analytics.wires.codex_rollout_outputs import end_of
from analytics.wires.codex_rollout_rows import Reading

FIXTURES = Path(__file__).parent / "fixtures" / "codex-rollout"
START = datetime(2026, 5, 4, 10, tzinfo=UTC)
FIGURES = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
COLUMNS = ("input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens")
PSEUDO = {"is_line_key", "is_shared_run"}


def uuid7(seconds):
    """An id that says when it was made: so many seconds behind START."""
    digits = f"{int((START.timestamp() + seconds) * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}-7aaa-8bbb-{int(seconds):012d}"


def stamp(seconds):
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def vector(figures, **more):
    return dict(zip(FIGURES, figures, strict=False)) | {"total_tokens": figures[0] + figures[2]} | more


class File:
    """A rollout under construction; its clock moves a second a row."""

    def __init__(self, begun=0, **meta):
        self.rows, self.clock, self.total = [], begun, (0, 0, 0, 0)
        self.thread = meta.pop("id", uuid7(begun))
        self.meta(self.thread, **meta)

    def row(self, kind, payload, **envelope):
        self.rows.append({"timestamp": stamp(self.clock), "type": kind, "payload": payload} | envelope)
        self.clock += 1
        return self

    def meta(self, thread, **more):
        said = {"id": thread, "timestamp": stamp(self.clock), "cwd": "/shed", "originator": "codex_cli_rs"}
        return self.row("session_meta", said | {"cli_version": "0.120.0", "source": "cli"} | more)

    def event(self, kind, **payload):
        return self.row("event_msg", {"type": kind} | payload)

    def item(self, kind, **payload):
        return self.row("response_item", {"type": kind} | payload)

    def turn(self, turn=None, model="gpt-5.3-codex", **more):
        named = {} if turn is None else {"turn_id": turn}
        if turn is not None:
            self.event("task_started", **named, **more)
        return self.row("turn_context", {"model": model, "effort": "high"} | named)

    def done(self, turn, **more):
        return self.event("task_complete", turn_id=turn, **more)

    def count(self, total, last, limits=None, **more):
        info = {"total_token_usage": vector(total), "model_context_window": 272_000}
        info["last_token_usage"] = vector(last, **more) if last is not None else None
        self.total = total
        return self.event("token_count", info=info, rate_limits=limits)

    def spend(self, *last, limits=None):
        return self.count(tuple(a + b for a, b in zip(self.total, last, strict=True)), last, limits)

    def again(self):
        return self.row("event_msg", self.rows[-1]["payload"])

    def limits(self, **limits):
        return self.event("token_count", info=None, rate_limits=limits)

    def call(self, call, name="exec_command", **arguments):
        return self.item("function_call", name=name, call_id=call, arguments=json.dumps(arguments))

    def out(self, call, text="fine"):
        return self.item("function_call_output", call_id=call, output=text)

    def replay(self, other, *, metas=True, upto=None):
        """What a fork repeats of another file: the same payloads with new times."""
        for row in other.rows[:upto]:
            if metas or row["type"] != "session_meta":
                self.row(row["type"], row["payload"])
        self.total = other.total if upto is None else total_of(other.rows[:upto])
        return self

    def read(self, **how):
        return Read(lines_of(self.rows), **how)


def total_of(rows):
    infos = [row["payload"]["info"] for row in rows if row["payload"].get("info")]
    return tuple(infos[-1]["total_token_usage"][name] for name in FIGURES) if infos else (0, 0, 0, 0)


def lines_of(rows, **how):
    return [json.dumps(row, **how).encode() for row in rows]


class Read:
    """Rows of a source read in one go, or in steps with the state through JSON between them."""

    def __init__(self, lines, shape="rollout", *, step=None, source="src"):
        ctx = Context(source, shape, WIRE.new_state(shape))
        objs = [WIRE.decoder(shape).decode(line) for line in lines]
        self.rows, self.refused = [], {}
        for at in range(0, len(objs), step or len(objs) or 1):
            self.take(WIRE.read(objs[at : at + (step or len(objs))], ctx), at)
            ctx.state = WIRE.load_state(shape, msgspec.json.encode(ctx.state).decode())
        self.state = ctx.state
        assert {name for row in self.rows for name in row} <= {column.name for column in EVENT} | PSEUDO
        assert {row["kind"] for row in self.rows} <= set(KINDS)
        assert {row["usage_scope"] for row in self.rows if "usage_scope" in row} <= set(USAGE_SCOPES)
        assert {topic for row in self.rows for topic in row.get("speaks", "").split()} <= set(TOPICS)
        assert {refusal.reason for refusal in self.refused.values()} <= NAMES

    def take(self, read, at):
        whole = [dict(read.constants) for _ in range(read.n)]
        for name in {*read.columns, *read.sparse, *(name for _, said in read.filled for name in said)}:
            for places, values in read.said(name):
                known = values.to_pylist() if isinstance(values, pa.Array) else values
                for i, value in zip(places, known, strict=True):
                    if value is not None:
                        whole[i][name] = value
        for i, row in enumerate(whole):
            if i in read.refused:
                self.refused[at + i] = read.refused[i]
                continue
            self.rows.append(row | {"line": at + i, "part": 0})
            inherited = {k: row[k] for k in ("run_id", "run_id_origin", "ts", "ts_origin", "event") if k in row}
            parts = [values for place, values in read.parts if place == i]
            for number, values in enumerate(parts, 1):
                known = {name: value for name, value in values.items() if value is not None}
                self.rows.append(inherited | known | {"line": at + i, "part": number})

    def of(self, kind):
        return [row for row in self.rows if row["kind"] == kind]

    def one(self, kind):
        (row,) = self.of(kind)
        return row

    def figures(self):
        return [tuple(row.get(name) for name in COLUMNS) for row in self.of("usage")]

    def topics(self):
        return {topic for row in self.rows for topic in row.get("speaks", "").split()}

    def open_turns(self):
        started = [row["turn_id"] for row in self.of("turn.started") if "is_shadow" not in row]
        ended = {row["turn_id"] for row in self.of("turn.ended")}
        return [turn for turn in started if turn not in ended]


def count(*files):
    """Requests and summed figures by run over all files, in any order: of equal keys the one in the oldest file."""
    reads = [Read(lines_of(f.rows) if isinstance(f, File) else f, source=f"src{n}") for n, f in enumerate(files)]
    oldest = sorted(reads, key=lambda read: min(row["ts"] for row in read.rows if "ts" in row))
    kept = {}
    for read in oldest:
        for row in read.of("usage"):
            kept.setdefault(row["usage_key"], row)
    runs = {}
    for row in kept.values():
        figures = runs.setdefault(row["run_id"], [0] * 5)
        for n, value in enumerate((1, *(row[name] for name in COLUMNS))):
            figures[n] += value
    return {run: tuple(figures) for run, figures in runs.items()}


A, B, C = (1000, 800, 50, 10), (1200, 1000, 60, 20), (1500, 1200, 70, 0)


class TestMeter:
    def test_a_request_is_a_moved_total(self):
        """Every `last` summed: five requests, 5900 input. Equal `last` dropped: two."""
        read = File().turn().spend(*A).again().spend(*A).spend(*B).again().read()
        assert read.figures() == [A, A, B]
        assert [row["requests"] for row in read.of("usage")] == [1, 1, 1]
        assert len({row["usage_key"] for row in read.of("usage")}) == 3
        assert {row["usage_scope"] for row in read.of("usage")} == {"delta"}
        assert all(row["request_id"] == row["usage_key"] for row in read.of("usage"))

    def test_cached_is_inside_the_input(self):
        """Trap 60: added to it, 1800."""
        row = File().spend(*A).read().one("usage")
        assert (row["input_tokens"], row["cache_read_tokens"], row["input_includes_cache"]) == (1000, 800, True)
        assert row["usage_is_final"] is True

    def test_the_first_total_may_be_inherited(self):
        """Trap 52: a child whose counter starts where the parent's stood; the total taken for its own: 900,000."""
        file = File(forked_from_id=uuid7(-9)).count((900_000, 800_000, 9000, 900), A)
        assert file.spend(*B).read().figures() == [A, B]

    @pytest.mark.parametrize("last", [None, (0, 0, 0, 0)])
    def test_without_a_last_the_first_total_is_all_there_is(self, last):
        assert File().count(A, last).read().figures() == [A]

    def test_an_empty_last_of_a_fork_is_an_estimate(self):
        file = File(forked_from_id=uuid7(-9)).count((9000, 8000, 90, 9), (0, 0, 0, 0), total_tokens=700)
        assert file.spend(*B).read().figures() == [B]

    def test_a_total_of_nothing_is_no_request(self):
        assert File().count((0, 0, 0, 0), (0, 0, 0, 0)).spend(*A).read().figures() == [A]

    def test_a_smaller_part_is_a_counter_that_started_again(self):
        """The last total of the file: 1500; a difference would be negative."""
        file = File().spend(*A).spend(*B)
        file.meta(file.thread).count(C, C).count((2500, 2000, 120, 10), A)
        assert file.read().figures() == [A, B, C, (1000, 800, 50, 10)]

    def test_one_smaller_part_is_enough(self):
        file = File().count((5000, 4000, 100, 90), A).count((5100, 4100, 200, 10), (100, 100, 100, 10))
        assert file.read().figures() == [A, (100, 100, 100, 10)]

    def test_a_restart_without_last_counts_its_total(self):
        assert File().spend(*C).count(A, None).read().figures() == [C, A]

    def test_after_a_compaction_one_event_estimates(self):
        """Trap 62: summing `last.total_tokens` adds 31,000 that nobody used."""
        file = File().spend(*C).event("context_compacted").count(C, (0, 0, 0, 0), total_tokens=31_000).spend(*A)
        read = file.read()
        assert read.figures() == [C, A]
        assert [row.get("context_tokens") for row in read.rows if "context_window_tokens" in row] == [
            1570, 31_000, 1050,
        ]  # fmt: skip

    def test_the_difference_counts_where_an_event_was_lost(self):
        """By `last` the lost one is missing: 1200."""
        assert File().spend(*A).count((3400, 2800, 170, 50), B).read().figures() == [A, (2400, 2000, 120, 40)]

    def test_a_context_beyond_the_window_is_a_sum(self):
        """codex #24089: 4.28 M of a window of 570 K."""
        file = File().spend(*A).count((4_281_000, 1800, 60, 20), (4_280_000, 1000, 10, 10))
        read = file.read()
        assert read.figures() == [A, (4_280_000, 1000, 10, 10)]
        assert [row.get("context_tokens") for row in read.of("usage")] == [1050, None]

    def test_what_is_not_recorded_is_not_zero(self):
        total = {"input_tokens": 700, "output_tokens": 7, "cache_write_input_tokens": 300}
        file = File().event("token_count", info={"total_token_usage": total, "last_token_usage": total})
        later = {"input_tokens": 900, "output_tokens": 9, "cache_write_input_tokens": 350}
        read = file.event("token_count", info={"total_token_usage": later, "last_token_usage": later}).read()
        assert read.figures() == [(700, None, 7, None), (200, None, 2, None)]
        assert [row["cache_write_tokens"] for row in read.of("usage")] == [300, 50]
        assert "context_window_tokens" not in read.of("usage")[0]

    def test_the_model_is_that_of_the_latest_context(self):
        """The last model for all: three requests of one model."""
        file = File().turn(model="gpt-5-codex").spend(*A).spend(*A).turn(model="gpt-5.3-codex").again().spend(*B)
        rows = file.read().of("usage")
        assert [row["model"] for row in rows] == ["gpt-5-codex", "gpt-5-codex", "gpt-5.3-codex"]
        assert {row["effort"] for row in rows} == {"high"}

    def test_without_figures_there_is_no_request_but_the_topic(self):
        read = File().event("token_count", info=None, rate_limits=None).read()
        assert (read.of("usage"), read.rows[-1]["kind"]) == ([], "system")
        assert read.topics() == {"decisions", "results", "clock", "tokens"}
        assert "tokens" not in File().turn().read().topics()

    def test_a_thread_of_billions_fits(self):
        """Trap 55 and others: running totals of 3.2e9."""
        big = (3_158_656_533, 3_000_000_000, 9_000_000, 1)
        assert File().count(big, A).count(tuple(a + b for a, b in zip(big, B, strict=True)), B).read().figures() == [
            A,
            B,
        ]

    @pytest.mark.parametrize(
        ("figure", "reason"),
        [
            (-1, "number_out_of_range"),
            (1.5, "number_out_of_range"),
            (10**15 + 1, "number_out_of_range"),
            (2**63 - 1, "number_out_of_range"),
            (2**63, "number_out_of_range"),
            ("9", "malformed"),
        ],
    )
    def test_a_broken_counter_is_refused_and_moves_nothing(self, figure, reason):
        file = File().spend(*A)
        broken = {"total_token_usage": vector(A) | {"input_tokens": figure}, "last_token_usage": vector(A)}
        read = file.event("token_count", info=broken).spend(*B).read()
        assert [(n, refusal.reason, refusal.run_id) for n, refusal in read.refused.items()] == [
            (2, reason, file.thread)
        ]
        assert read.figures() == [A, B]

    def test_the_largest_counter(self):
        """Nine thousand such rows still add up in 64 bits; two of 2**63 - 1 do not."""
        assert File().count((10**15, 0, 0, 0), None).read().figures() == [(10**15, 0, 0, 0)]


def parent_of(*, turns=True):
    """A thread of two requests, and a third behind the point where it is forked."""
    file = File().turn(uuid7(1) if turns else None).spend(*A).again().spend(*B)
    if turns:
        file.done(uuid7(1))
    return file


def goes_on(file, turn=None):
    return file.turn(turn).spend(*C)


class TestForks:
    @pytest.mark.parametrize("turns", [True, False])
    @pytest.mark.parametrize("metas", [True, False])
    def test_a_replay_is_the_parents(self, turns, metas):
        """Each file alone: three requests each, six together. The replay is stamped with the fork's times."""
        parent = parent_of(turns=turns)
        fork = File(100, forked_from_id=parent.thread).replay(parent, metas=metas)
        goes_on(fork, uuid7(120) if turns else None)
        parent.clock = 200
        parent.turn(uuid7(201) if turns else None).spend(1600, 1300, 80, 30)
        assert count(fork, parent) == {
            parent.thread: (3, 3800, 3100, 190, 60),
            fork.thread: (1, 1500, 1200, 70, 0),
        }

    @pytest.mark.parametrize("turns", [True, False])
    def test_a_fork_of_a_fork(self, turns):
        root = parent_of(turns=turns)
        first = goes_on(File(100, forked_from_id=root.thread).replay(root), uuid7(120) if turns else None)
        second = goes_on(File(200, forked_from_id=first.thread).replay(first), uuid7(220) if turns else None)
        assert [row["type"] for row in second.rows[:3]] == ["session_meta"] * 3
        assert count(second, root, first) == {
            root.thread: (2, 2200, 1800, 110, 30),
            first.thread: (1, 1500, 1200, 70, 0),
            second.thread: (1, 1500, 1200, 70, 0),
        }

    def test_a_fork_of_a_fork_that_replays_no_metas_but_names_both(self):
        """Without turn ids the chain begins at the root as far as the leading metas name it."""
        root = parent_of(turns=False)
        first = goes_on(File(100, forked_from_id=root.thread).replay(root, metas=False))
        second = goes_on(File(200, forked_from_id=first.thread).replay(first))
        assert count(root, first, second)[second.thread] == (1, 1500, 1200, 70, 0)

    @pytest.mark.parametrize("turns", [True, False])
    def test_siblings_of_a_missing_parent_share_its_prefix(self, turns):
        """The oldest child owns it; one names the parent only inside its source (trap 57)."""
        gone = parent_of(turns=turns)
        spawn = {"subagent": {"thread_spawn": {"parent_thread_id": gone.thread, "depth": 1}}}
        files = [
            File(100, forked_from_id=gone.thread),
            File(200, parent_thread_id=gone.thread),
            File(300, source=spawn),
        ]
        for number, file in enumerate(files):
            file.replay(gone, metas=False).turn(uuid7(file.clock) if turns else None).spend(10 + number, 0, 1, 0)
            file.spend(*C)
        assert count(*reversed(files)) == {
            files[0].thread: (4, 3710, 3000, 181, 30),
            files[1].thread: (2, 1511, 1200, 71, 0),
            files[2].thread: (2, 1512, 1200, 71, 0),
        }

    def test_a_lone_orphan_counts_its_first_event_by_last(self):
        file = File(forked_from_id=uuid7(-50)).turn(uuid7(2)).count((912_000, 710_000, 30_500, 9100), A).spend(*B)
        assert count(file) == {file.thread: (2, 2200, 1800, 110, 30)}

    def test_children_without_a_replay_may_have_equal_figures(self):
        """A key of the figures alone drops one of them (trap 57's counter-example)."""
        parent = parent_of()
        children = [File(100 + n, parent_thread_id=parent.thread).turn(uuid7(105 + n)).spend(*A) for n in range(2)]
        assert count(parent, *children) == {
            parent.thread: (2, 2200, 1800, 110, 30),
            children[0].thread: (1, *A),
            children[1].thread: (1, *A),
        }

    def test_the_total_alone_is_no_key(self):
        """Trap 56: two children that arrive at one total in different ways."""
        turn, parent = uuid7(5), uuid7(0)
        one = File(100, forked_from_id=parent).turn(turn).count((2200, 1800, 110, 30), A)
        two = File(101, forked_from_id=parent).turn(turn).count((2200, 1800, 110, 30), B)
        assert count(one, two) == {one.thread: (1, *A), two.thread: (1, *B)}

    def test_a_short_turn_id_names_a_turn_of_its_thread_only(self):
        one, two = File(0).turn("1").spend(*A), File(50).turn("1").spend(*A)
        assert count(one, two) == {one.thread: (1, *A), two.thread: (1, *A)}
        fork = goes_on(File(100, forked_from_id=one.thread).replay(one), "2")
        assert count(one, fork) == {one.thread: (1, *A), fork.thread: (1, *C)}

    def test_a_newer_version_replays_absent_figures_as_zeros(self):
        parent = File().turn(uuid7(1))
        old = {"input_tokens": 700, "cached_input_tokens": 0, "output_tokens": 7, "reasoning_output_tokens": 0}
        parent.event("token_count", info={"total_token_usage": old, "last_token_usage": old})
        fork = File(100, forked_from_id=parent.thread).turn(uuid7(1))
        new = old | {"cache_write_input_tokens": 0, "total_tokens": 0}
        fork.event("token_count", info={"total_token_usage": new, "last_token_usage": new})
        assert count(parent, fork) == {parent.thread: (1, 700, 0, 7, 0)}

    @pytest.mark.parametrize("turns", [True, False])
    def test_a_copy_that_stopped_earlier_adds_nothing(self, turns):
        """Trap 61: sessions/ and archived_sessions/."""
        file = goes_on(parent_of(turns=turns), uuid7(60) if turns else None)
        assert count(lines_of(file.rows[:4]), file) == {file.thread: (3, 3700, 3000, 180, 30)}

    def test_turns_that_only_a_replay_shows_are_not_the_forks(self):
        """The parent was forked in the middle of its turn, which therefore never ends here."""
        parent = File().turn(uuid7(1), started_at=1).spend(*A)
        fork = File(100, forked_from_id=parent.thread).replay(parent).turn(uuid7(120)).spend(*B).done(uuid7(120))
        read = fork.read()
        assert read.open_turns() == []
        assert [row.get("is_shadow") for row in read.of("turn.started")] == [True, None]
        assert parent.read().open_turns() == [uuid7(1)]

    def test_without_times_in_ids_the_begin_tells(self):
        created = int(START.timestamp()) + 100
        fork = File(100, id="fork", forked_from_id="root").turn("a", started_at=created - 50)
        fork.turn("b", started_at=created + 1).done("b").done("a")
        read = fork.read()
        assert [row.get("is_shadow") for row in read.of("turn.started")] == [True, None]
        assert (read.open_turns(), read.of("turn.ended")[-1]["status"]) == ([], "completed")

    def test_without_any_evidence_a_forks_next_turn_ends_the_one_before(self):
        read = File(100, id="fork", forked_from_id="root").turn("a").turn("b").read()
        assert read.open_turns() == ["b"]
        assert [(row["turn_id"], row["status"]) for row in read.of("turn.ended")] == [("a", "replayed")]
        assert File(id="own").turn("a").turn("b").read().open_turns() == ["a", "b"]


class TestPages:
    @staticmethod
    def pages(*, base=None):
        one = File(history_mode="paginated").turn(uuid7(1)).spend(*A).spend(*B)
        two = File(0, id=one.thread, history_mode="paginated", history_base=base or {"thread_id": one.thread})
        two.clock = 500
        two.total = one.total
        return one, two.turn(uuid7(500)).count(one.total, B).spend(*C)

    def test_a_page_begins_with_the_last_figures_of_the_page_before(self):
        """Each page alone: four requests (trap 68)."""
        one, two = self.pages()
        whole = {one.thread: (3, 3700, 3000, 180, 30)}
        assert count(one, two) == count(two, one) == whole

    def test_a_page_alone_counts_what_it_has(self):
        one, two = self.pages()
        assert count(two) == {one.thread: (2, 2700, 2200, 130, 20)}

    def test_a_base_without_a_thread_is_the_own_one(self):
        one, two = self.pages(base={"kind": "resume"})
        assert count(one, two) == {one.thread: (3, 3700, 3000, 180, 30)}

    def test_a_page_of_another_thread_is_a_fork(self):
        one, _ = self.pages()
        fork = File(300, history_mode="paginated", history_base={"thread_id": one.thread, "end_ordinal": 5})
        fork.turn(uuid7(310)).count(one.total, B)
        fork.total = one.total
        fork.spend(*C)
        assert count(one, fork) == {one.thread: (2, 2200, 1800, 110, 30), fork.thread: (1, *C)}
        assert fork.read().one("run.started")["parent_run_id"] == one.thread

    def test_ordinals_change_nothing(self):
        one, two = self.pages()
        for page in (one, two):
            page.rows = [row | {"ordinal": n} for n, row in enumerate(page.rows)]
        assert count(one, two) == {one.thread: (3, 3700, 3000, 180, 30)}


class TestThreads:
    def test_the_first_meta_names_the_run_and_later_ones_change_nothing(self):
        """Trap 58: keyed by session_id, children overwrite their root."""
        file = File(session_id="root", forked_from_id="p").meta("p").turn().spend(*A)
        file.meta(file.thread, cwd="/elsewhere").spend(*B)
        read = file.read()
        assert {row["run_id"] for row in read.rows} == {file.thread}
        assert {row["run_id_origin"] for row in read.rows} == {"wire"}
        assert len(read.of("run.started")) == 1

    @pytest.mark.parametrize(
        ("meta", "parent"),
        [
            ({}, None),
            ({"forked_from_id": "f", "parent_thread_id": "p"}, "f"),
            ({"parent_thread_id": "p", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "s"}}}}, "p"),
            ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "s", "depth": 2}}}}, "s"),
            ({"source": {"subagent": "review"}}, None),
            ({"source": {"subagent": ["?"]}, "forked_from_id": 7}, None),
        ],
    )
    def test_the_parent_is_named_in_four_places(self, meta, parent):
        assert File(**meta).read().one("run.started").get("parent_run_id") == parent

    def test_what_the_run_says_of_itself(self):
        spawn = {"parent_thread_id": "p", "depth": 1, "agent_nickname": "Finch", "agent_role": "scout"}
        file = File(
            source={"subagent": {"thread_spawn": spawn}},
            session_id="r",
            model_provider="custom",
            git={"branch": "main"},
        )
        read = file.turn().read()
        begun = read.one("run.started")
        assert (begun["event"], begun["part"], begun["line"]) == ("run", 1, 0)
        assert json.loads(begun["attributes"]) == {
            "session_id": file.thread, "view_rank": 20, "cwd": "/shed", "git_branch": "main", "version": "0.120.0",
            "originator": "codex_cli_rs", "source": "subagent/thread_spawn", "model_provider": "custom",
            "agent_nickname": "Finch", "agent_role": "scout", "depth": 1, "root_id": "r", "spawned_by": "p",
        }  # fmt: skip
        assert (read.rows[0]["end_rule"], read.rows[0]["speaks"]) == ("turns", "decisions results clock")
        assert all(row["is_line_key"] and row["is_shared_run"] for row in read.rows if row["part"] == 0)
        assert not any("event_key" in row for row in read.rows)

    def test_rows_before_the_meta_are_its_own(self):
        file = File().turn().spend(*A)
        rows = [file.rows[1], file.rows[0], *file.rows[2:]]
        read = Read(lines_of(rows))
        assert {row["run_id"] for row in read.rows} == {file.thread}
        assert (read.one("run.started")["line"], read.one("run.started")["run_id"]) == (0, file.thread)

    def test_a_file_without_a_meta_is_a_run_of_its_own(self):
        file = File().turn().spend(*A)
        read = Read(lines_of(file.rows[1:]), source="s1")
        assert {(row["run_id"], row["run_id_origin"]) for row in read.rows} == {("codex-rollout-s1", "source")}
        begun = read.one("run.started")
        assert "attributes" not in begun
        assert "parent_run_id" not in begun
        assert read.figures() == [A]

    def test_a_meta_that_comes_later_begins_the_run(self):
        file = File().turn().spend(*A)
        read = Read(lines_of([file.rows[1], *file.rows]), step=1)
        assert [row["run_id"] for row in read.of("run.started")] == ["codex-rollout-src", file.thread]

    def test_a_meta_without_an_id_is_refused(self):
        file = File().turn()
        read = Read(lines_of([file.rows[0] | {"payload": {"cwd": "/"}}, *file.rows]))
        assert [(n, r.reason, r.run_id) for n, r in read.refused.items()] == [(0, "malformed", file.thread)]
        assert read.one("run.started")["line"] == 1

    @pytest.mark.parametrize("step", [None, 1, 2])
    def test_joined_files_are_their_threads(self, step):
        """Read as one thread, the second's first total is a counter that started again, and one run has all."""
        one, two = parent_of(turns=False), goes_on(File(100))
        read = Read(lines_of([*one.rows, *two.rows, *one.rows]), step=step)
        assert [row["run_id"] for row in read.of("run.started")] == [one.thread, two.thread, one.thread]
        assert [row["run_id"] for row in read.of("usage")] == [
            one.thread,
            one.thread,
            two.thread,
            one.thread,
            one.thread,
        ]
        joined = lines_of([*one.rows, *two.rows])
        assert count(one, two, joined) == count(joined) == count(one, two)

    def test_a_fork_is_not_a_joined_file(self):
        parent = parent_of()
        fork = goes_on(File(100, forked_from_id=parent.thread).turn(uuid7(101)).replay(parent), uuid7(150))
        assert {row["run_id"] for row in fork.read().rows} == {fork.thread}


class TestLimits:
    @staticmethod
    def sample(row):
        names = ("limit_id", "limit_window_minutes", "limit_used", "limit_unit", "limit_resets_at")
        return tuple(row.get(name) for name in names)

    def test_flat_names_without_a_reset(self):
        read = File().limits(
            primary_used_percent=12.5, primary_window_minutes=300,
            secondary_used_percent=3, secondary_window_minutes=10080, primary_to_secondary_ratio_percent=50.0,
        ).read()  # fmt: skip
        assert [self.sample(row) for row in read.of("rate_limit")] == [
            (None, 300, 12.5, "percent", None),
            (None, 10080, 3.0, "percent", None),
        ]
        assert [(row["line"], row["part"]) for row in read.of("rate_limit")] == [(1, 1), (1, 2)]

    def test_a_relative_reset_counts_from_the_row(self):
        """Trap 64."""
        at = int(START.timestamp()) + 1
        read = File().limits(primary={"used_percent": 71.0, "window_minutes": 300, "resets_in_seconds": 7200}).read()
        assert self.sample(read.one("rate_limit")) == (None, 300, 71.0, "percent", (at + 7200) * 1_000_000)

    def test_a_window_is_named_by_its_minutes(self):
        """Trap 66: the week stands in the primary slot."""
        week = {"used_percent": 40.0, "window_minutes": 10080, "resets_at": 1_778_000_000}
        read = File().limits(limit_id="codex", primary=week, secondary=None).read()
        assert self.sample(read.one("rate_limit")) == ("codex", 10080, 40.0, "percent", 1_778_000_000_000_000)

    @pytest.mark.parametrize(
        ("minutes", "named"), [(299, 300), (10079, 10080), (43200, 43200), (60, 60), (0, 0), (None, None), ("5h", None)]
    )
    def test_whole_hours_less_a_minute_are_whole_hours(self, minutes, named):
        read = File().limits(primary={"used_percent": 1, "window_minutes": minutes}).read()
        assert self.sample(read.one("rate_limit"))[1] == named

    def test_null_windows_are_not_known(self):
        """Traps 63 and 65: shown as 0 %, or the other limit's 20 % kept."""
        read = File().limits(limit_id="premium", primary=None, secondary=None, credits={"balance": "3"}).read()
        assert read.of("rate_limit") == []
        assert "limits" in read.topics()
        silent = File().spend(*A).event("token_count", info=None, rate_limits=None).read()
        assert "limits" not in silent.topics()

    def test_two_limits_interleave(self):
        window = {"window_minutes": 300, "resets_at": 1_778_000_000}
        file = File()
        for name, percent in (("codex", 20), ("sidecar", 3), ("codex", 22)):
            file.spend(
                *A, limits={"limit_id": name, "limit_name": name.title(), "primary": window | {"used_percent": percent}}
            )
        read = file.read()
        assert [(row["limit_id"], row["limit_used"]) for row in read.of("rate_limit")] == [
            ("codex", 20), ("sidecar", 3), ("codex", 22),
        ]  # fmt: skip
        assert [row["limit_name"] for row in read.of("rate_limit")] == ["Codex", "Sidecar", "Codex"]
        assert len(read.figures()) == 3
        assert [row["speaks"] for row in read.rows if "speaks" in row] == ["decisions results clock", "tokens limits"]

    def test_a_reached_limit_says_which(self):
        window = {"used_percent": 100.0, "window_minutes": 300, "resets_at": 1}
        read = File().limits(primary=window, rate_limit_reached_type="primary").read()
        assert read.one("rate_limit")["limit_status"] == "primary"

    @pytest.mark.parametrize("resets", [-1, 1_778_000_000_000, "soon", None, True])
    def test_a_reset_that_is_no_time_is_not_known(self, resets):
        read = File().limits(primary={"used_percent": 5, "window_minutes": 300, "resets_at": resets}).read()
        assert "limit_resets_at" not in read.one("rate_limit")

    @pytest.mark.parametrize("limits", ["?", [1], {"primary": "?"}, {"primary": {"used_percent": "?"}}])
    def test_limits_of_another_shape_cost_no_request(self, limits):
        assert File().spend(*A, limits=limits).read().figures() == [A]


REJECTED, GUARDED = ("deny", "rejected-by-user", "human"), ("deny", "guardian-denied", "vendor")


class TestCalls:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("exec command rejected by user", REJECTED),
            ("patch rejected by user", REJECTED),
            ("user rejected MCP tool call", REJECTED),
            ('exec_command failed for `make x`: Rejected("rejected by user")', REJECTED),
            ('{"output":"exec command rejected by user","metadata":{"exit_code":1}}', REJECTED),
            ("This action was rejected due to unacceptable risk.\nReason: it deletes", GUARDED),
            ("Operation not permitted", (None, None, None)),
            ("Exit code: 1\nOutput:\nexec command rejected by user", (None, None, None)),
            ("the log says: patch rejected by user", (None, None, None)),
        ],
    )
    def test_a_refusal_is_the_text_at_the_beginning(self, text, said):
        row = File().call("c").out("c", text).read().one("tool.finished")
        assert tuple(row.get(name) for name in ("decision", "reason", "decided_by")) == said
        assert row.get("evidence") == ("output_text" if said[0] else None)
        assert row.get("is_error") == (True if text.startswith("Exit code") else None)

    @pytest.mark.parametrize(
        ("text", "is_interrupted"),
        [
            ("aborted by user after 29.7s", True),
            ("Wall time: 3.1 seconds\naborted by user", True),
            ("Exit code: 0\nOutput:\naborted by user after 1s", False),
            ("make: aborted", False),
        ],
    )
    def test_an_interruption_refuses_nothing(self, text, is_interrupted):
        row = File().call("c").out("c", text).read().one("tool.finished")
        assert (row.get("status"), "decision" in row) == ("interrupted" if is_interrupted else None, False)

    @pytest.mark.parametrize(
        ("text", "exit_code", "duration"),
        [
            ("Chunk ID: 1f\nWall time: 0.25 seconds\nProcess exited with code 0\nOutput:\nExit code: 9", 0, 250),
            ("Wall time: 2 seconds\nProcess exited with code -1\nOriginal token count: 4\nOutput:\n", -1, 2000),
            ("Exit code: 2\nWall time: 1.5 seconds\nTotal output lines: 3\nOutput:\nx", 2, 1500),
            ("Process exited with code 7\nOutput:\nok", 7, None),
            ('{"output":"x","metadata":{"exit_code":3,"duration_seconds":0.2}}', 3, 200),
            ('{"metadata": {"duration_seconds": 1, "exit_code": 0}, "output": "Exit code: 5"}', 0, 1000),
            ('{"exit_code": 4}', None, None),
            ("no code here", None, None),
            ("", None, None),
        ],
    )
    def test_the_exit_code_is_the_hosts_not_the_commands(self, text, exit_code, duration):
        row = File().call("c").out("c", text).read().one("tool.finished")
        assert (row.get("exit_code"), row.get("duration_ms")) == (exit_code, duration)
        assert row.get("is_error") == (None if exit_code is None else exit_code != 0)
        assert row["text_chars"] == len(text)

    @pytest.mark.parametrize(
        ("output", "chars"),
        [
            ([{"type": "input_text", "text": "abc"}, {"type": "input_image", "image_url": "data:"}], 3),
            ({"content": "abcd", "success": False}, 4),
            ({"content": [{"type": "input_text", "text": "a"}]}, 1),
            (None, None),
            (17, None),
        ],
    )
    def test_an_output_may_be_items_or_an_object(self, output, chars):
        assert File().call("c").out("c", output).read().one("tool.finished").get("text_chars") == chars
        assert end_of(output).chars == chars

    def test_calls_carry_their_scope_tool_and_model(self):
        file = File().turn(uuid7(1)).call("a").out("a")
        file.item("custom_tool_call", name="apply_patch", call_id="b", status="completed", input="*** Begin Patch")
        file.item("custom_tool_call_output", call_id="b", output="done")
        file.item("local_shell_call", call_id="c", status="completed", action={"type": "exec", "command": ["ls"]})
        file.item("local_shell_call", id="d", action={}).item("tool_search_call", call_id="e", arguments={"q": 1})
        file.item("tool_search_output", call_id="e", tools=[])
        read = file.read()
        assert [(row["call_id"], row["tool"]) for row in read.of("tool.requested")] == [
            ("a", "exec_command"), ("b", "apply_patch"), ("c", "local_shell"), ("d", "local_shell"),
            ("e", "tool_search"),
        ]  # fmt: skip
        assert [(row["call_id"], row["tool"]) for row in read.of("tool.finished")] == [
            ("a", "exec_command"), ("b", "apply_patch"), ("e", "tool_search"),
        ]  # fmt: skip
        calls = read.of("tool.requested") + read.of("tool.finished")
        assert {row["call_scope"] for row in calls} == {f"codex:{file.thread}"}
        assert {row["turn_id"] for row in calls} == {uuid7(1)}
        assert {row["model"] for row in read.of("tool.requested")} == {"gpt-5.3-codex"}
        assert list(read.state.open) == ["c", "d"]

    @pytest.mark.parametrize(
        ("call", "scope"),
        [("call_" + "x" * 15, "codex"), ("call_" + "x" * 14, "codex:root"), ("call_1", "codex:root"),
         ("functions.Bash:0", "codex:root")],
    )  # fmt: skip
    def test_a_short_id_is_of_the_thread_where_it_began(self, call, scope):
        """`codex` for all: calls of two sessions of one gateway would be one. A fork's copy is its parent's call."""
        running = "Process running with session ID 3\nOutput:\n"
        over = "Process exited with code 0\nOutput:\n"
        root = File(id="root").call(call).out(call, running).call("p" * 20, "write_stdin", session_id=3)
        root.out("p" * 20, over).event("item_completed", item={"id": call, "status": "declined"})
        root.event("guardian_assessment", target_item_id=call, status="denied").call(call, "b").out(call, running)
        root.event("exec_command_end", call_id=call, exit_code=0)
        root.item("custom_tool_call", call_id=call, status="declined")
        fork = File(100, id="fork", forked_from_id="root").replay(root, metas=False).call(call)
        second = File(200, id="second", forked_from_id="fork").meta("fork", forked_from_id="root").meta("root")
        second.call(call)
        for file, calls in ((root, 10), (fork, 11), (second, 1)):
            rows = [row for row in file.read(step=1).rows if row.get("call_id") == call]
            assert (len(rows), {row["call_scope"] for row in rows}) == (calls, {scope})
        other = File(300, id="other").call(call).read().one("tool.requested")
        assert other["call_scope"] == scope.replace("root", "other")

    def test_a_short_id_of_a_file_without_a_meta(self):
        file = File()
        file.rows = file.call("a").rows[1:]
        assert file.read().one("tool.requested")["call_scope"] == "codex:codex-rollout-src"

    def test_a_search_without_an_id_is_no_call(self):
        file = File().item("web_search_call", status="completed", action={"type": "search"})
        file.item("tool_search_call", call_id=None, execution="server").item("tool_search_output", call_id=None)
        read = file.read()
        assert [row["event"] for row in read.of("system")][1:] == [
            "response_item/web_search_call", "response_item/tool_search_call", "response_item/tool_search_output",
        ]  # fmt: skip
        assert read.of("tool.requested") == read.of("tool.finished") == []

    def test_an_output_without_a_call_stays_one(self):
        row = File().out("left").read().one("tool.finished")
        assert (row["call_id"], row["call_scope"], "tool" in row) == ("left", f"codex:{uuid7(0)}", False)

    @pytest.mark.parametrize("kind", ["function_call", "function_call_output", "custom_tool_call"])
    def test_a_call_without_an_id_is_refused(self, kind):
        read = File().item(kind, name="x").read()
        assert [(n, r.reason) for n, r in read.refused.items()] == [(1, "malformed")]

    def test_a_declined_command_is_a_denial_by_its_status(self):
        """Trap 77: looked like a failure."""
        file = File().call("c").event("exec_command_end", call_id="c", exit_code=-1, status="declined").out("c", "no")
        read = file.read()
        row = read.one("tool.decided")
        assert (row["call_id"], row["call_scope"], row["decision"]) == ("c", f"codex:{file.thread}", "deny")
        assert (row["evidence"], row["reason"], "decided_by" in row) == ("item_status", "declined", False)
        assert "is_error" not in read.one("tool.finished")

    def test_declined_stands_in_other_places_too(self):
        file = File().event("item_completed", item={"type": "CommandExecution", "id": "a", "status": "declined"})
        file.event("patch_apply_end", call_id="b", success=False, status="declined")
        file.item("custom_tool_call", name="apply_patch", call_id="c", status="declined", input="")
        file.event("item_completed", item={"type": "CommandExecution", "id": "d", "status": "failed"})
        read = file.read()
        assert [(row["call_id"], row["reason"]) for row in read.of("tool.decided")] == [
            ("a", "declined"), ("b", "declined"), ("c", "declined"),
        ]  # fmt: skip
        assert read.one("tool.requested")["call_id"] == "c"

    @pytest.mark.parametrize(
        ("status", "decision", "reason"),
        [("denied", "deny", "guardian-denied"), ("approved", "allow", None), ("in_progress", None, None)],
    )
    def test_the_guardians_verdict(self, status, decision, reason):
        file = (
            File().call("c").event("guardian_assessment", id="g", target_item_id="c", status=status, risk_level="high")
        )
        row = file.read().rows[-1]
        assert row["kind"] == ("system" if decision is None else "tool.decided")
        assert (row.get("decision"), row.get("reason")) == (decision, reason)
        assert (row.get("call_id"), row["status"]) == ("c" if decision else None, status)
        if decision:
            assert (row["decided_by"], row["evidence"]) == ("vendor", "guardian_assessment")

    def test_a_verdict_may_name_its_call_by_its_own_id(self):
        file = File().call("c").event("guardian_assessment", id="c", status="denied")
        file.event("guardian_assessment", id="r", status="denied")
        assert [row.get("call_id") for row in file.read().of("tool.decided")] == ["c", None]

    def test_what_the_host_measured_goes_to_the_result(self):
        file = File().call("c")
        file.event(
            "exec_command_end", call_id="c", exit_code=4, status="failed", duration={"secs": 1, "nanos": 5_000_000}
        )
        row = file.out("c", "out of paper").read().one("tool.finished")
        assert (row["exit_code"], row["duration_ms"], row["is_error"]) == (4, 1005, True)

    def test_a_users_own_command_is_no_result_of_a_call(self):
        file = File().event("exec_command_end", call_id="u", source="user_shell", exit_code=0, status="completed")
        assert file.read().rows[-1]["kind"] == "system"

    @pytest.mark.parametrize("step", [None, 1])
    def test_a_process_runs_until_a_poll_shows_its_end(self, step):
        """`has an output, so it ended`: none still runs."""
        running = "Wall time: 1.0 seconds\nProcess running with session ID 71\nOutput:\n"
        file = File().call("a", cmd="make serve").out("a", running)
        file.call("b", "write_stdin", session_id=71, chars="").out("b", running)
        read = file.read(step=step)
        assert [(row["call_id"], row["status"]) for row in read.of("tool.finished")] == [
            ("a", "running"),
            ("b", "running"),
        ]
        assert {row["attributes"] for row in read.of("tool.finished")} == {'{"process":"71"}'}
        assert read.state.running == {"71": "a"}
        file.call("c", "write_stdin", session_id=71, chars="q")
        file.out("c", "Wall time: 0.5 seconds\nProcess exited with code 2\nOutput:\nbye")
        read = file.read(step=step)
        ends = [
            (row["call_id"], row["part"], row.get("exit_code"), row.get("is_error")) for row in read.of("tool.finished")
        ]
        assert ends == [("a", 0, None, None), ("b", 0, None, None), ("c", 0, 2, None), ("a", 1, 2, True)]
        assert "status" not in read.of("tool.finished")[-1]
        assert read.state.running == {}

    def test_the_hosts_end_of_a_running_process(self):
        file = File().call("a").out("a", "Process running with session ID 5\nOutput:\n")
        file.event("exec_command_end", call_id="a", process_id="5", exit_code=0, status="completed")
        read = file.read()
        assert [row.get("status") for row in read.of("tool.finished")] == ["running", "completed"]
        assert read.of("tool.finished")[-1]["exit_code"] == 0

    @pytest.mark.parametrize("arguments", ["", "{", '{"chars":""}', None, {"session_id": 5}])
    def test_odd_arguments_of_a_poll_cost_nothing(self, arguments):
        file = File().item("function_call", name="write_stdin", call_id="p", arguments=arguments).out("p", "gone")
        assert file.read().one("tool.finished")["call_id"] == "p"

    def test_a_call_opened_again_keeps_its_first_opening(self):
        file = (
            File()
            .call("a", "write_stdin", session_id=9)
            .call("a", "other")
            .out("a", "Process exited with code 0\nOutput:")
        )
        row = file.read().one("tool.finished")
        assert (row["tool"], row["attributes"]) == ("write_stdin", '{"process":"9"}')


class TestTurns:
    def test_ends_and_what_is_open(self):
        file = File().turn("a").done("a", duration_ms=2100).turn("b")
        read = file.event("turn_aborted", turn_id="b", reason="interrupted").turn("c").read()
        names = ("turn_id", "status", "reason", "duration_ms")
        assert [tuple(row.get(name) for name in names) for row in read.of("turn.ended")] == [
            ("a", "completed", None, 2100), ("b", "aborted", "interrupted", None),
        ]  # fmt: skip
        assert read.open_turns() == ["c"]

    def test_rows_belong_to_the_turn_under_way(self):
        file = File().turn("a").item("message", role="user", content=[]).done("a").event("token_count", info=None)
        read = file.turn("b").event("token_count", info=None).read()
        assert [row.get("turn_id") for row in read.rows if row["part"] == 0] == [
            None, "a", "a", "a", "a", None, "b", "b", "b",
        ]  # fmt: skip

    def test_turns_without_ids_are_counted(self):
        file = File().event("task_started").event("task_complete").event("task_started")
        read = file.read()
        assert [row["turn_id"] for row in read.of("turn.started")] == ["1", "2"]
        assert read.open_turns() == ["2"]

    def test_a_context_alone_marks_no_turn(self):
        read = File().row("turn_context", {"model": "m", "turn_id": "t"}).spend(*A).read()
        assert read.of("turn.started") == read.of("turn.ended") == []
        assert read.one("usage")["turn_id"] == "t"


class TestKinds:
    def test_each_type_has_a_kind_and_a_reader(self):
        for known in [*TYPES.values(), *ITEMS.values(), *EVENTS.values(), *BARE_ITEMS.values(), STATE_MARKER, HEADER]:
            assert known.kind in KINDS
            assert known.reader is None or callable(getattr(Reading, known.reader))

    @pytest.mark.parametrize(
        ("kind", "inner"),
        [("response_item", name) for name in ITEMS] + [("event_msg", name) for name in EVENTS]
        + [(name, None) for name in TYPES],
    )  # fmt: skip
    @pytest.mark.parametrize("odd", [False, True])
    def test_each_type_is_read_or_refused_never_raised(self, kind, inner, odd):
        """Every key with a value of another type: a row is loose, and so are its leaves."""
        payload = {name: [{"?": 1}] for name in Payload.__struct_fields__} if odd else {}
        read = File().row(kind, payload | ({} if inner is None else {"type": inner})).read()
        assert len(read.rows) >= 2
        known = ITEMS | EVENTS | TYPES
        if read.refused:
            assert read.refused[1].reason == "malformed"
        else:
            assert read.rows[-1]["kind"] in {known[inner or kind].kind, "system"}

    def test_what_stands_twice_is_told_once(self):
        file = File().item("message", role="user", content=[{"type": "input_text", "text": "sort"}])
        file.event("user_message", message="sort").item(
            "message", role="assistant", content=[{"type": "output_text", "text": "done it"}]
        )
        file.event("agent_message", message="done it").item(
            "reasoning", summary=[{"text": "hm"}], encrypted_content="Zm9v"
        )
        file.event("agent_reasoning", text="hm").row("compacted", {"message": "", "replacement_history": [
            {"type": "function_call", "name": "exec_command", "call_id": "old", "arguments": "{}"}]})  # fmt: skip
        read = file.event("context_compacted").read()
        told = [row for row in read.rows if row["part"] == 0 and "is_shadow" not in row]
        assert [(row["kind"], row["event"], row.get("text_chars")) for row in told][1:] == [
            ("message", "user", 4), ("message", "assistant", 7), ("reasoning", "response_item/reasoning", 2),
            ("compaction", "compacted", None),
        ]  # fmt: skip
        shadows = [row["kind"] for row in read.rows if row.get("is_shadow")]
        assert shadows == ["message", "message", "reasoning", "compaction"]
        assert read.of("tool.requested") == []

    def test_errors_retries_and_warnings(self):
        file = File().event("error", message="over", codex_error_info="usage_limit_exceeded")
        file.event("error", message="x" * 900, codex_error_info={"http_connection_failed": {"http_status_code": 502}})
        read = file.event("stream_error", message="again").event("warning", message="long thread").read()
        assert [(row["kind"], row.get("status"), row.get("is_error")) for row in read.rows[2:]] == [
            ("error", "usage_limit_exceeded", True), ("error", "http_connection_failed", True), ("retry", None, None),
            ("warning", None, None),
        ]  # fmt: skip
        assert [len(row["message"]) for row in read.rows[2:]] == [4, 500, 5, 11]

    @pytest.mark.parametrize(
        ("row", "event"),
        [
            ({"type": "event_msg", "payload": {"type": "sang", "call_id": {}}}, "event_msg/sang"),
            ({"type": "response_item", "payload": {"type": "poem", "content": {"deep": [1]}}}, "response_item/poem"),
            ({"type": "weather", "payload": {"type": "rain"}}, "weather"),
            ({"type": "weather", "payload": None}, "weather"),
            ({"type": "weather", "payload": [1]}, "weather"),
            ({"type": "weather"}, "weather"),
        ],
    )
    def test_an_unknown_type_is_opaque(self, row, event):
        file = File()
        read = Read(lines_of([*file.rows, {"timestamp": stamp(9)} | row]))
        assert [(r["kind"], r["event"]) for r in read.rows[2:]] == [("opaque", event)]

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ({"timestamp": "t", "type": "event_msg"}, "malformed"),
            ({"timestamp": "t", "type": "event_msg", "payload": "x"}, "malformed"),
            ({"timestamp": "t", "type": "session_meta", "payload": []}, "malformed"),
            ({"timestamp": "t", "type": "response_item", "payload": {}}, "malformed"),
            ({"timestamp": "t", "type": "response_item", "payload": {"type": 3}}, "malformed"),
            ({"type": "function_call", "call_id": "c"}, "malformed"),
            ({"payload": {"type": "x"}}, "unknown_event"),
            ({"type": ["x"], "payload": {}}, "unknown_event"),
            ({"type": None}, "unknown_event"),
            ({}, "unknown_event"),
        ],
    )
    def test_what_is_not_of_the_envelope_is_refused(self, row, reason):
        file = File()
        read = Read(lines_of([*file.rows, row]))
        assert [(n, r.reason, r.run_id) for n, r in read.refused.items()] == [(1, reason, file.thread)]

    def test_times(self):
        rows = File().turn().rows
        rows[1] |= {"timestamp": "yesterday"}
        read = Read(lines_of(rows))
        assert [row.get("ts_origin") for row in read.rows if row["part"] == 0] == ["vendor", None]
        assert read.rows[0]["ts"] == int(START.timestamp()) * 1_000_000


BARE = [
    {"id": "thread-1", "timestamp": "2025-08-20T08:00:00.000Z", "instructions": None, "git": {"branch": "main"}},
    {"record_type": "state"},
    {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "sort the nails"}]},
    {"record_type": "state"},
    {"type": "function_call", "id": None, "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
    {"type": "function_call_output", "call_id": "c1", "output": '{"output":"ok","metadata":{"exit_code":0}}'},
    {"type": "reasoning", "id": None, "summary": []},
    {"type": "local_shell_call", "id": "ls1", "status": "completed", "action": {"type": "exec"}},
    {"record_type": "ghost"},
    {"type": "poem", "text": "o nail"},
    {"record_type": "state"},
]


class TestBare:
    def test_no_usage_and_no_requests(self):
        """Zero instead of unknown."""
        read = Read(lines_of(BARE), "bare")
        assert read.of("usage") == []
        assert not any("requests" in row for row in read.rows)
        assert read.topics() == {"decisions", "results"}

    def test_the_header_names_the_run(self):
        read = Read(lines_of(BARE), "bare")
        assert {row["run_id"] for row in read.rows} == {"thread-1"}
        begun = read.one("run.started")
        assert json.loads(begun["attributes"]) == {"session_id": "thread-1", "view_rank": 20, "git_branch": "main"}
        assert (read.rows[0]["event"], read.rows[0]["end_rule"], "ts" in read.rows[0]) == ("header", "turns", True)
        assert not any("ts" in row or "ts_origin" in row for row in read.rows if row["line"] > 0)

    def test_items_are_what_they_are_in_an_envelope(self):
        read = Read(lines_of(BARE), "bare")
        assert [row["kind"] for row in read.rows if row["part"] == 0] == [
            "system", "system", "message", "system", "tool.requested", "tool.finished", "reasoning", "tool.requested",
            "opaque", "opaque", "system",
        ]  # fmt: skip
        assert [row["event"] for row in read.of("opaque")] == ["ghost", "poem"]
        assert read.one("tool.finished")["exit_code"] == 0
        assert [row["call_id"] for row in read.of("tool.requested")] == ["c1", "ls1"]

    @pytest.mark.parametrize("step", [None, 1, 3])
    def test_equal_rows_are_not_one_row(self, step):
        """By their bytes the three markers are one record, and the same one in every file."""
        read = Read(lines_of(BARE), "bare", step=step)
        keys = [row["event_key"] for row in read.rows if row["part"] == 0]
        assert len(set(keys)) == len(BARE)
        assert keys[3] == key64(b"thread-1 3")

    def test_joined_files(self):
        other = [{"id": "thread-2", "timestamp": "2025-08-21T08:00:00.000Z", "instructions": None}, *BARE[1:3]]
        read = Read(lines_of([*BARE, *other]), "bare")
        assert [row["run_id"] for row in read.of("run.started")] == ["thread-1", "thread-2"]
        alone = Read(lines_of(other), "bare")
        keys = [row["event_key"] for row in read.rows if row["run_id"] == "thread-2" and row["part"] == 0]
        assert keys == [row["event_key"] for row in alone.rows if row["part"] == 0]

    def test_a_row_without_a_type_is_refused(self):
        read = Read(lines_of([*BARE, {"text": "?"}, {"id": 3, "timestamp": "t"}, {"type": 3}]), "bare")
        assert [(n - len(BARE), r.reason) for n, r in read.refused.items()] == [
            (0, "unknown_event"), (1, "unknown_event"), (2, "unknown_event"),
        ]  # fmt: skip

    def test_rows_of_a_later_version_are_read(self):
        read = Read(
            lines_of([*BARE, {"timestamp": stamp(0), "type": "event_msg", "payload": {"type": "error"}}]), "bare"
        )
        assert read.one("error")["event"] == "event_msg/error"


class TestSniff:
    @pytest.mark.parametrize(
        ("objects", "shape"),
        [
            ([{"timestamp": "t", "type": "session_meta", "payload": {"id": "x"}}], "rollout"),
            ([{"x": 1}, {"timestamp": "t", "type": "response_item", "payload": {"type": "message"}}], "rollout"),
            (BARE[:1], "bare"),
            (BARE[1:3], "bare"),
            ([{"type": "thread.started", "thread_id": "x"}], None),
            ([{"type": "event_msg"}], None),
            ([{"type": "user", "payload": {}, "sessionId": "x"}], None),
            ([{"type": "assistant.message", "data": {}, "id": "a", "timestamp": "t"}], None),
            ([{"id": "a", "timestamp": "t", "type": "session", "cwd": "/"}], None),
            ([{"id": "a", "timestamp": "t"}], None),
            ([], None),
        ],
    )
    def test_by_content(self, objects, shape):
        assert WIRE.sniff(Sample(objects, 0)) == shape

    def test_no_sample_of_another_wire(self):
        samples = (FIXTURES.parent / "samples").rglob("*.jsonl")
        others = [path for path in samples if path.parent.name != "codex-rollout"]
        assert len(others) > 5
        for path in others:
            objects = []
            for line in path.read_bytes().splitlines():
                try:
                    objects.append(json.loads(line))
                except ValueError:
                    continue
            assert WIRE.sniff(Sample([o for o in objects if isinstance(o, dict)], 0)) is None, path


def rich_file():
    """A bit of everything, with a parent."""
    parent = parent_of()
    file = File(100, forked_from_id=parent.thread).replay(parent).turn(uuid7(150)).spend(*C)
    file.call("a").out("a", "Process running with session ID 3\nOutput:\n").event("mystery", value=[1])
    file.call("b", "write_stdin", session_id=3).event(
        "exec_command_end", call_id="b", exit_code=1, duration={"secs": 1}
    )
    file.out("b", "Process exited with code 1\nOutput:\n").call("c").out("c", "patch rejected by user")
    file.limits(limit_id="codex", primary={"used_percent": 4, "window_minutes": 299, "resets_at": 1_778_000_000})
    file.again().event("turn_aborted", reason="interrupted").meta(file.thread).count(A, A).call("d")
    file.rows += goes_on(File(900), "x").rows
    return file


class TestProperties:
    @pytest.mark.parametrize(("rows", "shape"), [(rich_file().rows, "rollout"), (BARE, "bare")])
    def test_cut_anywhere_and_read_on_is_the_whole(self, rows, shape):
        lines = lines_of(rows)
        whole = Read(lines, shape)
        for step in range(1, len(lines)):
            read = Read(lines, shape, step=step)
            assert (read.rows, read.refused, read.state) == (whole.rows, whole.refused, whole.state), step

    @pytest.mark.parametrize(("rows", "shape"), [(rich_file().rows, "rollout"), (BARE, "bare")])
    def test_the_serialisers_taste_is_none_of_ours(self, rows, shape):
        """Byte patterns instead of a decoder see no spaced JSON, or no other order of keys."""
        whole = Read(lines_of(rows, separators=(",", ":")), shape)
        shuffler = random.Random(5)

        def shuffled(value):
            if isinstance(value, list):
                return [shuffled(item) for item in value]
            if not isinstance(value, dict):
                return value
            keys = list(value)
            shuffler.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}

        for lines in (
            lines_of(rows, indent=None, separators=(" , ", " : ")),
            lines_of([shuffled(row) for row in rows]),
        ):
            assert Read(lines, shape).rows == whole.rows

    def test_the_state_stays_small(self):
        file = File().turn(uuid7(1))
        for n in range(500):
            file.call(f"call_{n:024}").out(f"call_{n:024}").spend(*A)
        assert len(msgspec.json.encode(file.read().state)) < 1000


class TestFixtures:
    """Files as they lie on disk, through the worker."""

    @pytest.fixture(name="reader")
    def _reader(self, tmp_path):
        return Reader(tmp_path / "out")

    @pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.jsonl")), ids=lambda path: path.name)
    def test_every_line_is_accounted_for(self, reader, path):
        _, reading = reader.read(path)
        check_conservation(reading)
        assert rebuild(reading) == path.read_bytes()
        assert (reading.wire, reading.source["shape"]) == (
            "codex-rollout",
            "bare" if "bare" in path.name else "rollout",
        )

    @pytest.mark.parametrize("shape", ["rollout", "bare"])
    def test_half_a_surrogate_pair_costs_nothing(self, reader, tmp_path, shape):
        """The output of a call was refused with its line, so the call stayed open."""
        file = File().call("a").out("a", "cut \ud83d here").call("b").out("b", "\ude80")
        file.call("c").out("c", "\ud83d\ude80")
        rows = file.rows if shape == "rollout" else [row["payload"] for row in file.rows]
        if shape == "bare":
            rows[0] = {"id": file.thread, "timestamp": stamp(0), "instructions": None}
        data = b"".join(line + b"\n" for line in lines_of(rows))
        assert data.count(b"\\ud83d") == 2
        path = tmp_path / "cut.jsonl"
        path.write_bytes(data)
        _, reading = reader.read(path)
        check_conservation(reading)
        assert (reading.source["shape"], reading.reasons()) == (shape, [])
        assert rebuild(reading) == data
        ended = [row for row in reading.events if row["kind"] == "tool.finished"]
        assert [(row["call_id"], row["text_chars"]) for row in ended] == [("a", 10), ("b", 1), ("c", 1)]
        assert "\\ud83d" in ended[0]["payload"]

    def test_what_else_is_wrong_is_still_refused(self, reader, tmp_path):
        whole = lines_of(File().out("a", "cut \ud83d here").rows)
        path = tmp_path / "broken.jsonl"
        path.write_bytes(b"\n".join([*whole, whole[1][:-3], whole[1] + b"x", whole[1].replace(b'"a"', b"NaN"), b""]))
        _, reading = reader.read(path)
        assert reading.reasons() == [(3, "not_json"), (4, "not_json"), (5, "not_json")]

    @pytest.mark.parametrize("name", ["family-fork.jsonl", "restart.jsonl", "background.jsonl"])
    def test_a_file_that_grows(self, reader, tmp_path, name):
        data = (FIXTURES / name).read_bytes()
        path = tmp_path / name
        path.write_bytes(data)
        _, whole = reader.read(path)
        reader.clear()
        cuts = random.Random(3).sample(range(data.index(b"\n") + 1, len(data)), 6)
        assert reader.grow(path, data, cuts).events == whole.events

    def test_a_family(self):
        """Root (two requests of its own), a fork of it, a fork of the fork, and a child without a replay.

        Root: 9,000 and 9,600 input; fork: 10,300; fork of the fork: 11,000; child: 9,000 (equal to the root's first).
        """
        names = ("family-root", "family-fork", "family-fork-of-fork", "family-child")
        found = count(*[(FIXTURES / f"{name}.jsonl").read_bytes().splitlines() for name in names])
        assert list(found.values()) == [
            (2, 18_600, 15_000, 350, 90), (1, 10_300, 9_500, 120, 0), (1, 11_000, 10_200, 60, 30),
            (1, 9_000, 7_000, 200, 60),
        ]  # fmt: skip

    def test_a_restart(self):
        """Two requests, a resume whose counter starts again, an estimate after a compaction, a lost event."""
        read = Read((FIXTURES / "restart.jsonl").read_bytes().splitlines())
        assert read.figures() == [
            (20_000, 15_000, 500, 100), (24_000, 20_000, 900, 300), (26_000, 1_000, 200, 60), (61_000, 50_000, 700, 0),
        ]  # fmt: skip

    def test_processes_in_the_background(self):
        """One ended by a poll, one by the host, one still runs."""
        read = Read((FIXTURES / "background.jsonl").read_bytes().splitlines())
        last = {row["call_id"]: row for row in read.of("tool.finished")}
        runs = [row["call_id"] for row in read.of("tool.requested") if row["tool"] == "exec_command"]
        assert [(call, last[call].get("status"), last[call].get("exit_code")) for call in runs] == [
            ("call_polled", None, 0), ("call_ended", "failed", 3), ("call_serving", "running", None),
        ]  # fmt: skip
