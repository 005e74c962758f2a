"""Sources of every wire, damaged in every way that leaves something to give back: what goes in must come out."""

from __future__ import annotations

import gzip
import json
import random
import string
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from conftest import CORPUS
from hypothesis import strategies as st

FIXTURES = Path(__file__).parent / "fixtures"
BOM = b"\xef\xbb\xbf"


def _of(folder: Path, *patterns: str) -> list[bytes]:
    found = sorted(path for pattern in patterns for path in folder.glob(pattern) if path.is_file())
    assert found, (folder, patterns)
    return [path.read_bytes() for path in found]


# wire → whole files of it, one record per line
STREAMS: dict[str, list[bytes]] = {
    "metaharness": _of(CORPUS / "metaharness", "*/*.jsonl") + _of(FIXTURES / "samples/metaharness", "*.jsonl"),
    "harness-lab events": _of(CORPUS / "harness-lab/events", "*.jsonl")
    + _of(FIXTURES / "samples/harness-lab", "events-*.jsonl"),
    "harness-lab stdout": _of(FIXTURES / "samples/harness-lab", "generic-stdout.jsonl"),
    "platonic-core": _of(CORPUS / "platonic-core", "*/runs/*") + _of(FIXTURES / "samples/platonic-core", "*.jsonl"),
    "platonic-core, bare": [
        b"".join(json.dumps(json.loads(line)["event"]).encode() + b"\n" for line in text.splitlines())
        for text in _of(FIXTURES / "samples/platonic-core", "recorded-events-*.jsonl")
    ],
    "claude-code": _of(CORPUS / "claude/projects", "**/*.jsonl")
    + _of(FIXTURES / "native/cs-broken-lines", "**/*.jsonl"),
    "claude-stream": _of(CORPUS / "claude-stream", "*") + _of(FIXTURES / "native/ss-two-processes-and-noise", "*"),
    "codex-rollout": _of(CORPUS / "codex/sessions", "**/*.jsonl") + _of(FIXTURES / "codex-rollout", "*.jsonl"),
    "codex-exec": _of(CORPUS / "codex-exec", "*.jsonl") + _of(FIXTURES / "codex-exec", "*.jsonl"),
}
DOCUMENTS = _of(CORPUS / "harness-lab", "export-*.json")
MOST_LINES = 40  # of a file: enough for every kind of record, few enough for many examples
JUNK = (
    b"{", b"}", b"{}", b"[]", b"null", b"plain text", b"\0\0\0", b"\xff\xfe", b'{"a":"\xff"}', b'{"a":NaN}',
    b'{"a":1}{"b":2}', b"[" * 3000, b'{"type":"no such type"}', "zażółć \u2028 jaźń".encode(), BOM, b"\x0b", b"\x0c",
    b'{"a":"\\ud800"}', b'{"a":123456789012345678901234567890}', b"a\rb", b"2026-11-04 12:00 warning: \xe9t\xe9",
)  # fmt: skip
BLANKS = (b"", b" ", b"\t", b"\r", b" \t \r")
ENDINGS = (b"\n", b"\r\n", None)  # None: mixed


@dataclass(frozen=True)
class Made:
    """A source: the suffix of its file, what that holds, and what of it is content (after decompression)."""

    suffix: str
    stored: bytes
    content: bytes
    secrets: int = 0
    redacted: bytes = b""


KINDS = {
    "sk_key": lambda rng: "sk-" + "ant-api03-" + _letters(rng, 60),
    "github_token": lambda rng: "ghp" + "_" + _letters(rng, 36),
    "aws_access_key": lambda rng: "AK" + "IA" + "".join(rng.choices(string.ascii_uppercase + string.digits, k=16)),
    "gitlab_token": lambda rng: "glpat" + "-" + _letters(rng, 24),
}


def _letters(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.ascii_letters + string.digits, k=count))


@st.composite
def contents(draw, secrets: bool = False):
    """A damaged stream of some wire: (bytes, the same with each planted secret replaced, secrets)."""
    wire = draw(st.sampled_from(sorted(STREAMS)))
    lines = draw(st.sampled_from(STREAMS[wire])).split(b"\n")
    start = draw(st.integers(0, max(0, len(lines) - MOST_LINES)))
    lines = [lines[0], *lines[start + 1 : start + MOST_LINES]]
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(lines) - 1))
        edit = draw(
            st.sampled_from(("junk", "blank", "blank", "torn", "trailing", "glued", "spliced", "bytes", "twice"))
        )
        if edit == "junk":
            lines.insert(at, draw(st.sampled_from(JUNK)))
        elif edit == "blank":
            lines.insert(at, draw(st.sampled_from(BLANKS)))
        elif edit == "torn":
            lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
        elif edit == "trailing":
            lines[at] += draw(st.sampled_from((b" and more", b"\r", b" ", b"\0", b"\r\r")))
        elif edit in ("glued", "spliced") and at + 1 < len(lines):
            first = lines[at] if edit == "glued" else lines[at][: draw(st.integers(0, len(lines[at])))]
            between = draw(st.sampled_from((b"", b"", b" ", b"\t", b"\r", b"\0\0", b" \r ", b"x")))
            lines[at : at + 2] = [first + between + lines[at + 1]]
        elif edit == "bytes" and lines[at]:
            place = draw(st.integers(0, len(lines[at]) - 1))
            lines[at] = lines[at][:place] + draw(st.sampled_from((b"\xff", b"\xc3", b"\0", b"\r"))) + lines[at][place:]
        elif edit == "twice":
            lines.insert(at, lines[at])
    planted: list[tuple[bytes, bytes]] = []
    if secrets:
        rng = random.Random(draw(st.integers(0, 2**32)))
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(lines) - 1))
            label = draw(st.sampled_from(sorted(KINDS)))
            secret = KINDS[label](rng).encode()
            before = lines[at]
            lines[at] = (
                before.replace(b'":"', b'":"' + secret + b" ", 1) if b'":"' in before else secret + b" " + before
            )
            planted.append((secret, f"[REDACTED:{label}]".encode()))
    ending = draw(st.sampled_from(ENDINGS))
    ends = [ending or draw(st.sampled_from((b"\n", b"\r\n"))) for _ in lines]
    if draw(st.booleans()):
        ends[-1] = b""
    data = b"".join(line + end for line, end in zip(lines, ends, strict=True))
    data = draw(st.sampled_from((b"", b"", b"", BOM))) + data
    clean = data
    for secret, label in planted:
        clean = clean.replace(secret, label)
    return data, clean, len(planted)


@st.composite
def documents(draw, secrets: bool = False):
    """A Harness Lab export in some spelling: compact, indented, with CRLF, cut, or of another shape."""
    text = draw(st.sampled_from(DOCUMENTS))
    obj = json.loads(text)
    spelling = draw(st.sampled_from(("as it is", "compact", "indented", "crlf", "cut", "trailing")))
    if spelling == "compact":
        text = json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode()
    elif spelling in ("indented", "crlf"):
        text = json.dumps(obj, indent=draw(st.integers(0, 4))).encode()
        text = text.replace(b"\n", b"\r\n") if spelling == "crlf" else text
    elif spelling == "cut":
        text = text[: draw(st.integers(1, len(text) - 1))]
    elif spelling == "trailing":
        text += draw(st.sampled_from((b"\n\n", b"  ", b"\r\n")))
    text = draw(st.sampled_from((b"", BOM))) + text
    clean, count = text, 0
    if secrets:
        rng = random.Random(draw(st.integers(0, 2**32)))
        places = [at for at in range(len(text)) if text.startswith((b'":"', b'": "'), at)]
        for at in (
            sorted(draw(st.lists(st.sampled_from(places), max_size=3, unique=True)), reverse=True) if places else ()
        ):
            begin = text.index(b'"', text.index(b":", at)) + 1
            label = draw(st.sampled_from(sorted(KINDS)))
            secret = KINDS[label](rng).encode()
            text = text[:begin] + secret + b" " + text[begin:]
            clean = clean[:begin] + f"[REDACTED:{label}]".encode() + b" " + clean[begin:]
            count += 1
    return text, clean, count


@st.composite
def sources(draw, secrets: bool = False):
    """One source, perhaps compressed."""
    made = draw(st.one_of(contents(secrets), contents(secrets), contents(secrets), documents(secrets)))
    content, clean, count = made
    way = draw(st.sampled_from(("plain", "plain", "plain", "gz", "two members", "zst")))
    stored, suffix = content, {"zst": "jsonl.zst", "plain": "json"}.get(way, "jsonl.gz")
    if way == "gz":
        stored = gzip.compress(content, 1)
    elif way == "two members":
        half = len(content) // 2
        stored = gzip.compress(content[:half], 1) + gzip.compress(content[half:], 1)
    elif way == "zst":
        stored = pa.compress(content, "zstd", asbytes=True)
    return Made(suffix, stored, content, count, clean)
