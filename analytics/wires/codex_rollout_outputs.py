"""How a call ended, by the text of its output: exit code, a process still running, a refusal, an interruption.

The texts are Codex's own and stand at the output's beginning, before a line "Output:"; what a command printed comes
behind it and proves nothing. Older outputs are JSON in a string, with the exit code beside the output. Counts are those
of the field notes on native transcripts, section 3: 16 refusals, 11 interruptions, 545 "Operation not permitted" (the
sandbox's, a result like any other).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from analytics.wires.base import MAX_INT
from analytics.wires.codex_rollout_lines import Other

HEAD_CHARS = 400
SHELL_CHARS = 300  # where the exit code of an output in JSON stands: near one of its ends
OUTPUT = "\nOutput:"
HEADER = re.compile(  # of nearly all outputs of commands; the others are searched for each part
    r"(?:Chunk ID: [^\n]*\n)?Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds\n"
    r"Process (?:exited with code (-?\d{1,10})|running with session ID (\d{1,20}))$",
    re.MULTILINE,
)
EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})$", re.MULTILINE)
RUNNING = re.compile(r"^Process running with session ID (\d{1,20})$", re.MULTILINE)
WALL = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds", re.MULTILINE)
REFUSING = ("exec", "patch", "user", "This")  # how each of DENIALS begins
INTERRUPTED = re.compile(r"aborted by user|Wall time: [\d.]{1,20} seconds\naborted by user")
USER, GUARDIAN = ("rejected-by-user", "human"), ("guardian-denied", "vendor")
DENIALS: tuple[tuple[re.Pattern[str], tuple[str, str]], ...] = (
    (re.compile(r"(?:exec command|patch) rejected by user|user rejected MCP tool call"), USER),
    (re.compile(r'exec_command failed\b[^\n]{0,4000}?Rejected\(\\*"rejected by user\\*"\)'), USER),
    (re.compile(r"This action was rejected due to unacceptable risk"), GUARDIAN),
)


class ShellMeta(Struct, gc=False):
    exit_code: Any = None
    duration_seconds: Any = None


class Shell(Struct, gc=False):
    """An output as JSON in a string."""

    output: Any = None
    metadata: ShellMeta | Other = None


SHELL = msgspec.json.Decoder(Shell)


@dataclass(slots=True)
class End:
    """What an output says; `denial` is the kind of refusal and who decided."""

    chars: int | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    process: str | None = None
    is_interrupted: bool = False
    denial: tuple[str, str] | None = None


def end_of(output: Any) -> End:
    """The end that an output tells: text, content items, or an object around either."""
    if type(output) is dict:
        output = output.get("content")
    text = output
    if type(output) is list:
        texts = [item.get("text") for item in output if type(item) is dict]
        text = "\n".join(part for part in texts if type(part) is str)
    if type(text) is not str:
        return End()
    end = End(len(text))
    if text.startswith("{") and ('"exit_code"' in text[:SHELL_CHARS] or '"exit_code"' in text[-SHELL_CHARS:]):
        text = unwrap(text, end)
    elif (header := HEADER.match(text)) is not None:
        end.duration_ms = round(float(header[1]) * 1000)
        end.exit_code = None if header[2] is None else int(header[2])
        end.process = header[3]
        return end
    else:
        search(text[:HEAD_CHARS].partition(OUTPUT)[0], end)
    if "aborted" in text[:HEAD_CHARS]:
        end.is_interrupted = INTERRUPTED.match(text) is not None
    if text.startswith(REFUSING):
        end.denial = next((said for pattern, said in DENIALS if pattern.match(text)), None)
    return end


def search(head: str, end: End) -> None:
    """What stands before the output, in any order."""
    if "code" in head and (found := EXIT.search(head)) is not None:
        end.exit_code = int(found[1])
    if "session ID" in head and (found := RUNNING.search(head)) is not None:
        end.process = found[1]
    if "Wall time" in head and (found := WALL.search(head)) is not None:
        end.duration_ms = round(float(found[1]) * 1000)


def unwrap(text: str, end: End) -> str:
    """The output inside JSON; its exit code and duration go to `end`."""
    try:
        shell = SHELL.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text
    meta = shell.metadata
    if type(meta) is not ShellMeta:
        return text
    if type(meta.exit_code) is int and abs(meta.exit_code) <= MAX_INT:
        end.exit_code = meta.exit_code
    if type(meta.duration_seconds) in (int, float) and 0 <= meta.duration_seconds < 1e9:
        end.duration_ms = round(meta.duration_seconds * 1000)
    return shell.output if type(shell.output) is str else ""
