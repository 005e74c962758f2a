"""Write fake homes of Claude Code and Codex whose lines are as long as real ones, for measuring.

usage: native_corpus.py OUT [--megabytes 300] [--seed 1]

Half of the bytes are session files, half rollouts. Line lengths are log-normal (median 1.2 kB, mean about 3.4 kB, the
mean measured over public transcripts; a few reach 200 kB), and the text is made of words, so that it compresses like
text (about 4 : 1). The figures mean nothing; `tests/fixtures/cases/gen_native_traps.py` is the one with a truth.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

START = datetime(2026, 9, 1, 8, tzinfo=UTC)
LETTERS = "etaoinshrdlucmfwypvbgk"
FILE_BYTES = 1_500_000
MAX_LINE_BYTES = 200_000
Row = dict[str, Any]


class Maker:
    """Everything random comes from here."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a corpus, no secret
        lengths = [self.random.randint(2, 9) for _ in range(4000)]
        self.words = ["".join(self.random.choices(LETTERS, k=size)) for size in lengths]
        self.weights = [1 / (rank + 3) for rank in range(len(self.words))]
        self.now = START

    def uuid(self) -> str:
        """A new one."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def time(self, seconds: float = 4) -> str:
        """A little later than the last."""
        self.now += timedelta(seconds=self.random.uniform(0.1, seconds))
        return self.now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.now.microsecond // 1000:03d}Z"

    def text(self) -> str:
        """Words, few or many."""
        size = min(self.random.lognormvariate(6.4, 1.6), MAX_LINE_BYTES)
        return " ".join(self.random.choices(self.words, self.weights, k=max(1, int(size / 6))))

    def session(self) -> Iterator[Row]:
        """Rows of one Claude Code session file."""
        session, parent, version = self.uuid(), None, "2.1.120"
        while True:
            answer, call = f"msg_{self.random.getrandbits(80):020x}", f"toolu_{self.random.getrandbits(80):020x}"
            usage = {
                "input_tokens": 4, "cache_creation_input_tokens": self.random.randint(50, 4000),
                "cache_read_input_tokens": self.random.randint(9000, 150_000), "service_tier": "standard",
            }  # fmt: skip
            blocks: list[Row] = [
                {"type": "thinking", "thinking": self.text(), "signature": self.uuid() * 6},
                {"type": "text", "text": self.text()},
                {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": self.text()[:300]}},
            ]
            common = {
                "isSidechain": False, "userType": "external", "cwd": "/project", "sessionId": session,
                "version": version, "gitBranch": "main",
            }  # fmt: skip
            for place, block in enumerate(blocks, 1):
                is_last = place == len(blocks)
                message = {
                    "model": "claude-opus-4-6", "id": answer, "type": "message", "role": "assistant",
                    "content": [block], "stop_reason": "tool_use" if is_last else None, "stop_sequence": None,
                    "usage": usage | {"output_tokens": 300 if is_last else place},
                }  # fmt: skip
                own = self.uuid()
                yield {"parentUuid": parent} | common | {
                    "type": "assistant", "message": message, "requestId": "req_" + answer[4:], "uuid": own,
                    "timestamp": self.time(),
                }  # fmt: skip
                parent = own
            result, own = self.text(), self.uuid()
            yield {"parentUuid": parent} | common | {
                "type": "user", "uuid": own, "timestamp": self.time(),
                "message": {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": call, "content": result, "is_error": False},
                ]},
                "toolUseResult": {"stdout": result, "stderr": "", "interrupted": False},
            }  # fmt: skip
            parent = own

    def rollout(self) -> Iterator[Row]:
        """Rows of one Codex rollout."""
        thread, turn = self.uuid(), self.uuid()
        total = dict.fromkeys(
            ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"), 0
        )

        def row(kind: str, payload: Row) -> Row:
            return {"timestamp": self.time(), "type": kind, "payload": payload}

        yield row("session_meta", {"id": thread, "cwd": "/project", "cli_version": "0.120.0", "source": "cli"})
        yield row("event_msg", {"type": "task_started", "turn_id": turn})
        yield row("turn_context", {"model": "gpt-5.2-codex", "effort": "medium", "turn_id": turn, "cwd": "/project"})
        while True:
            call, last = f"call_{self.random.getrandbits(80):020x}", dict.fromkeys(total, 0)
            last |= {"input_tokens": self.random.randint(9000, 150_000), "output_tokens": self.random.randint(40, 900)}
            last["cached_input_tokens"] = last["input_tokens"] // 2
            last["total_tokens"] = last["input_tokens"] + last["output_tokens"]
            total = {name: value + last[name] for name, value in total.items()}
            yield row("response_item", {"type": "reasoning", "summary": [], "encrypted_content": self.uuid() * 30})
            arguments = json.dumps({"cmd": self.text()[:300]})
            yield row("response_item", {
                "type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call,
            })  # fmt: skip
            yield row("response_item", {"type": "function_call_output", "call_id": call, "output": self.text()})
            said = self.text()
            yield row("event_msg", {"type": "agent_message", "message": said})
            yield row("response_item", {
                "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}],
            })  # fmt: skip
            limits = {
                "limit_id": "codex", "primary": {"used_percent": 12.0, "window_minutes": 300, "resets_at": 1788000000},
                "secondary": {"used_percent": 3.0, "window_minutes": 10080, "resets_at": 1788400000},
            }  # fmt: skip
            info = {"total_token_usage": total, "last_token_usage": last, "model_context_window": 272_000}
            yield row("event_msg", {"type": "token_count", "info": info, "rate_limits": limits})


def write(path: Path, rows: Iterator[Row], limit: int) -> int:
    """Rows as lines until the file has about so many bytes; returns how many it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            size += file.write(json.dumps(row, separators=(",", ":")) + "\n")
            if size >= limit:
                return size
    return size


def main() -> None:
    """Write the corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    maker, half = Maker(args.seed), args.megabytes * 500_000
    for folder, rows in (("claude/projects/-project", maker.session), ("codex/sessions/2026/09/01", maker.rollout)):
        done = number = 0
        while done < half:
            done += write(args.out / folder / f"{number:05d}.jsonl", rows(), min(FILE_BYTES, half - done))
            number += 1


if __name__ == "__main__":
    main()
