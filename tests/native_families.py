"""Random families of transcripts, with the truth kept while they are written: forks, restarts, copies, lost files."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from native_make import Rollout, Session, Tokens, text, thought, tool, usage

Figures = dict[str, int]


@dataclass
class Truth:
    """What each run owns, and what stands in any file at all."""

    runs: dict[str, Figures] = field(default_factory=dict)
    total: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def own(self, run: str, **figures: int) -> None:
        kept = self.runs.setdefault(run, dict.fromkeys(figures, 0))
        for name, value in figures.items():
            kept[name] += value


@dataclass
class Thread:
    """A rollout while it is made: each row's request, if it is one, and whose it is."""

    file: Rollout
    owned: list[tuple[str, int, Tokens] | None] = field(default_factory=list)
    turns: int = 0

    def mark(self, entry: tuple[str, int, Tokens] | None = None) -> None:
        """The entry of the last row; rows before it are no requests."""
        self.owned += [None] * (len(self.file.rows) - len(self.owned))
        if entry is not None:
            self.owned[-1] = entry


class Threads:
    """A family of Codex threads: a root, forks of it and of its forks, some of whose files are lost."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name, self.rng = name, rng
        self.has_turns = rng.random() < 0.6
        self.start = rng.randrange(1000)
        root = Thread(Rollout(f"{name}-0", start=self.start))
        self.threads = {root.file.thread: root}
        self.parents: dict[str, str] = {}
        self.go_on(root)
        for number in range(1, rng.randint(1, 5)):
            self.fork(f"{name}-{number}")
            if rng.random() < 0.4:
                self.go_on(rng.choice(list(self.threads.values())))
        lost = {thread for thread in self.threads if rng.random() < 0.15} if len(self.threads) > 1 else set()
        self.lost = lost if len(lost) < len(self.threads) else set()

    def vector(self) -> Tokens:
        """A request; few values where turns tell requests apart, many where only the figures do."""
        top = 4 if self.has_turns else 10_000
        given, output = self.rng.randint(2, 2 + top), self.rng.randint(2, 2 + top)
        return given, self.rng.randint(0, given - 1), output, self.rng.randint(0, output - 1)

    def go_on(self, thread: Thread) -> None:
        one, rng = thread.file, self.rng
        for _ in range(rng.randint(1, 3)):
            thread.turns += 1
            one.turn(f"{one.thread}/t{thread.turns}" if self.has_turns else None)
            for step in range(rng.randint(1, 3)):
                last = self.vector()
                entry = (one.thread, len(one.rows), last)
                kind = rng.random()
                if kind < 0.12 and step == 0 and one.total[0] > last[0]:
                    one.meta(one.thread).count(last)
                elif kind < 0.2 and one.total[0]:
                    moved = tuple(a + b + 1 for a, b in zip(one.total, last, strict=True))
                    entry = (one.thread, len(one.rows), tuple(b + 1 for b in last))  # type: ignore[assignment]
                    one.count(moved, last)  # type: ignore[arg-type]
                else:
                    one.spend(*last)
                thread.mark(entry)
                for _ in range(rng.choice((0, 0, 0, 1, 2))):
                    one.again()
                if rng.random() < 0.1:
                    one.count(one.total, (0, 0, 0, 0), total_tokens=77)
                if rng.random() < 0.2:
                    one.limits(None)
        thread.mark()

    def fork(self, name: str) -> None:
        """A file that replays another's rows up to the end of one of its turns, then goes on or ends."""
        parent = self.rng.choice(list(self.threads.values()))
        known = parent.file.thread
        source = {"subagent": {"thread_spawn": {"parent_thread_id": known, "depth": 1}}}
        says: dict[str, Any] = self.rng.choice(
            ({"forked_from_id": known}, {"parent_thread_id": known}, {"source": source})
        )
        start = self.start + 10_000 * len(self.threads)
        child = Thread(Rollout(name, start=start, **says))
        rows = self.rng.randint(1, len(parent.file.rows))
        child.file.replay(parent.file, rows)
        child.owned = [None, *parent.owned[:rows]]
        self.threads[name] = child
        self.parents[name] = known
        if self.rng.random() < 0.8:
            self.go_on(child)

    def tell(self, truth: Truth) -> dict[str, Rollout]:
        """The files that are there, and their truth: a lost thread's requests belong to the oldest copy's run."""
        files = {name: one for name, one in self.threads.items() if name not in self.lost}
        seen: set[tuple[str, int, Tokens]] = set()
        for name, one in files.items():  # in the order of their first times
            truth.own(name, requests=0, input_tokens=0, cache_read_tokens=0, output_tokens=0, reasoning_tokens=0)
            for entry in one.owned:
                if entry is None or entry in seen or (entry[0] != name and entry[0] in files):
                    continue
                seen.add(entry)
                given, cached, output, reasoning = entry[2]
                truth.own(
                    name, requests=1, input_tokens=given, cache_read_tokens=cached, output_tokens=output,
                    reasoning_tokens=reasoning,
                )  # fmt: skip
        return {f"{name}.jsonl": one.file for name, one in files.items()}


class Sessions:
    """A family of Claude Code sessions: branches, subagents that mirror, checkpoints; some originals are lost."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name, self.rng = name, rng
        self.answers = self.calls = 0
        root = Session(f"{name}-0", start=rng.randrange(1000), version=rng.choice(("1.0.60", "2.1.30", "2.1.120")))
        root.user()
        self.files: dict[str, Session] = {f"{name}-0.jsonl": root}
        self.go_on(root)
        for number in range(1, rng.randint(1, 5)):
            self.branch(number)
            if rng.random() < 0.4:
                self.go_on(rng.choice(list(self.files.values())))
        whole = list(self.files.items())
        if len(whole) > 1 and rng.random() < 0.25:
            del self.files[rng.choice(whole)[0]]
        if rng.random() < 0.4:
            path, one = rng.choice(list(self.files.items()))
            self.files[f"checkpoint/{path}"] = one.cut(rng.randint(1, len(one.rows)))

    def go_on(self, one: Session) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.answers += 1
            answer, given = f"{self.name}-m{self.answers}", self.rng.randint(1, 9)
            blocks = [self.rng.choice((text(), thought())) for _ in range(self.rng.randint(0, 2))]
            calls = [f"toolu_{self.name}-c{self.calls + n}" for n in range(self.rng.randint(0, 2))]
            self.calls += len(calls)
            blocks += [tool(call) for call in calls] or [text()]
            grows = self.rng.random() < 0.6
            final = self.rng.randint(20, 90)
            request = self.rng.choice((None, f"{answer}-q"))
            read, write = self.rng.choice(((None, None), (self.rng.randint(0, 99), self.rng.randint(0, 99))))
            for place, block in enumerate(blocks):
                is_last = place == len(blocks) - 1
                figures = usage(given, final if is_last or not grows else place + 1, read=read, write=write)
                one.answer(answer, figures, block, stop="end_turn" if is_last else None, request=request)
            for call in calls:
                if self.rng.random() < 0.85:
                    one.result(call)

    def branch(self, number: int) -> None:
        """A copy of some rows of another file: a resumed session or a subagent's mirror."""
        path, of = self.rng.choice([(path, one) for path, one in self.files.items() if len(one.rows) > 1])
        part = of.cut(self.rng.randint(2, len(of.rows)))
        start = 10_000 * number + self.rng.randrange(100)
        if of.agent is None and self.rng.random() < 0.4:
            made = part.copy(start=start, isSidechain=True, agentId=f"x{number}")
            for row in made.rows:
                row["requestId"] = f"{self.name}-side-{number}"
            made.rows[0]["timestamp"] = part.rows[-1]["timestamp"]
        else:
            made = part.copy(f"{self.name}-{number}", start=start)
        self.files[f"{number}-{path.replace('/', '-')}"] = made
        if self.rng.random() < 0.8:
            self.go_on(made)

    def tell(self, truth: Truth) -> dict[str, Session]:
        """The sums over all files that are there; who owns what is left open, since originals may be lost."""
        best: dict[str, dict[str, Any]] = {}
        calls: set[str] = set()
        results: set[str] = set()
        for row in (row for one in self.files.values() for row in one.rows):
            body = row.get("message")
            if not body:
                continue
            blocks = body["content"] if isinstance(body["content"], list) else []
            calls |= {block["id"] for block in blocks if block["type"] == "tool_use"}
            results |= {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
            if row["type"] == "assistant":
                kept = best.get(body["id"])
                if kept is None or body["usage"]["output_tokens"] > kept["output_tokens"]:
                    best[body["id"]] = body["usage"]
        names = {"input_tokens": "uncached_input_tokens", "output_tokens": "output_tokens"}
        names |= {"cache_read_input_tokens": "cache_read_tokens", "cache_creation_input_tokens": "cache_write_tokens"}
        for figures in best.values():
            for theirs, ours in names.items():
                truth.total[ours] += figures.get(theirs, 0)
        truth.total["requests"] += len(best)
        truth.total["tool_calls"] += len(calls)
        truth.total["unfinished"] += len(calls - results)
        return self.files
