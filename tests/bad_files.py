"""Bad input, whole files and runs: what each file is taken for, and what becomes of its lines.

A line's answer is a word of `bad_lines`; a refusal of the file itself has no line and is listed apart.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from bad_hosts import HOSTS, Host
from bad_lines import CODE, DEEP, EXEC, GENERIC, STREAM

NOISY = (GENERIC, STREAM, EXEC)
TEXTUAL = dict.fromkeys(NOISY, "text")
NO_WIRE, EMPTY = "no known wire by its content", "empty"


@dataclass(frozen=True)
class Outcome:
    """What a file must come to. `lines`: a word for each line; `skipped`: why it is none of ours."""

    lines: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()  # refusals without a line
    skipped: str | None = None
    pending: int = 0
    has_bom: bool = False
    is_refused: bool = False

    @property
    def reasons(self) -> list[str]:
        """Every refusal, as the words of the table have it."""
        words = [word for line in self.lines for word in line.split(" + ")]
        return [*self.whole, *(word for word in words if word not in ("event", "text", "blank"))]


@dataclass(frozen=True)
class BadFile:
    """One row: the file's bytes, and what it must come to, per form."""

    name: str
    make: Callable[[Host, str], bytes]
    outcome: Callable[[str, Host, bytes], Outcome]
    suffix: str = ".jsonl"
    settings: dict[str, Any] = field(default_factory=dict)
    forms: tuple[str, ...] = tuple(HOSTS)


def joined(host: Host, run: str) -> bytes:
    """A good stream."""
    return b"".join(host.good(run))


def good(host: Host) -> tuple[str, ...]:
    """The words for the lines of a good stream."""
    return ("event",) * (len(host.before) + 2)


def same(words: Callable[[str, Host], tuple[str, ...]], **more: Any) -> Callable[[str, Host, bytes], Outcome]:
    """An outcome that depends on the form alone."""
    return lambda form, host, _data: Outcome(words(form, host), **more)


def whole_lines(**more: Any) -> Callable[[str, Host, bytes], Outcome]:
    """Every line of the good stream is an event."""
    return same(lambda _form, host: good(host), **more)


def skipped(reason: str) -> Callable[[str, Host, bytes], Outcome]:
    """None of ours, and why."""
    return lambda _form, _host, _data: Outcome(skipped=reason)


def refused(reason: str) -> Callable[[str, Host, bytes], Outcome]:
    """Refused as a whole."""
    return lambda _form, _host, _data: Outcome(whole=(reason,), is_refused=True)


def unterminated(form: str, host: Host, data: bytes, word: str = "event") -> Outcome:
    """The last line has no newline: pending, since the file may grow; where nothing says so a line like any other."""
    if host.is_final_unterminated:
        return Outcome((*good(host)[:-1], word))
    return Outcome(good(host)[:-1], pending=len(data.rsplit(b"\n", 1)[1]))


def blank_lines(host: Host, run: str) -> bytes:
    """Blank lines of three kinds in a stream: before it, in it, and behind it."""
    first, *rest = host.good(run)
    return b"\n" + first + b" \t \n" + b"".join(rest) + b"\r\n"


def array_of_lines(host: Host, run: str) -> bytes:
    """A JSON array with a record on each line."""
    return b"[\n" + b",\n".join(host.good(run, end=b"")) + b"\n]\n"


def words_of_array(form: str, host: Host) -> tuple[str, ...]:
    """The brackets are no records, and each record but the last has a comma behind it."""
    bracket = TEXTUAL.get(form, "not_json")
    comma = {GENERIC: "text", STREAM: "event + text", CODE: "event + torn_record"}.get(form, "trailing_text")
    last = "sequence_mismatch" if form == "platonic-core" else "event"  # the records before it were refused
    return (bracket, *[comma] * (len(good(host)) - 1), last, bracket)


def pretty(host: Host, run: str) -> bytes:
    """One record, printed for people."""
    return json.dumps(json.loads(host.line(run)), indent=2).encode() + b"\n"


def words_of_pretty(form: str, _host: Host, data: bytes) -> Outcome:
    """No wire is seen in it; only a Claude Code row is known by its keys alone, and then each line is refused."""
    if form == CODE:
        return Outcome(("not_json",) * data.count(b"\n"))
    return Outcome(skipped=NO_WIRE)


def broken_string(host: Host, run: str) -> bytes:
    """A newline inside a string makes two lines of a record."""
    return b"".join(host.stream(run, host.line(run, text=b'"a\nb"'), is_event=False))


def words_of_halves(form: str, host: Host) -> tuple[str, ...]:
    """The first half begins like a record; the second is text where text is data."""
    halves = {GENERIC: ("text", "text"), STREAM: ("not_json", "text"), EXEC: ("not_json", "text")}
    return (*good(host)[:-2], *halves.get(form, ("not_json", "not_json")), "event")


def cut_gzip(host: Host, run: str) -> bytes:
    """A gzip file that was cut behind its second line; all that was flushed can be read."""
    first, second, *rest = host.good(run)
    packer = zlib.compressobj(wbits=31)
    kept = packer.compress(first + second) + packer.flush(zlib.Z_FULL_FLUSH)
    packer.compress(b"".join(rest))
    return kept


def zstd(data: bytes) -> bytes:
    """One zstd frame."""
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def corrupt_zstd(host: Host, run: str) -> bytes:
    """Two frames; the second is damaged behind its magic number."""
    first, second, *rest = host.good(run)
    frame = bytearray(zstd(b"".join(rest)))
    frame[4:12] = b"\xff" * 8
    return zstd(first + second) + bytes(frame)


def wrong_checksum(host: Host, run: str) -> bytes:
    """A gzip file whose checksum is not that of its content."""
    packed = bytearray(gzip.compress(joined(host, run)))
    packed[-8] ^= 1
    return bytes(packed)


def all_but_a_byte(_form: str, host: Host, data: bytes) -> Outcome:
    """zlib finds the fault as it makes the last byte, a newline, and a platonic-core line is no data without one."""
    whole = ("compressed_data_broken",)
    if not host.needs_newline:
        return Outcome(good(host), whole)
    last = zlib.decompressobj(wbits=-15).decompress(data[10:]).splitlines()[-1]
    return Outcome(good(host)[:-1], whole, pending=len(last))


BLANKS = 64


def bomb(host: Host, run: str) -> bytes:
    """A stream, then 4 MiB of spaces in lines of 64 KiB, in a few KB."""
    return gzip.compress(joined(host, run) + (b" " * 65_535 + b"\n") * BLANKS)


def long_line(host: Host, run: str) -> bytes:
    """A line of some 2,000 bytes; the limit is set to 1,024."""
    return b"".join(host.stream(run, host.line(run, text=b'"' + b"x" * 2000 + b'"'), is_event=False))


def with_middle(word: str) -> Callable[[str, Host], tuple[str, ...]]:
    """The good stream's words with another in place of the line under test."""
    return lambda _form, host: (*good(host)[:-2], word, "event")


def first_two(*whole: str) -> Callable[[str, Host, bytes], Outcome]:
    """Two lines are events, then the file cannot be read further."""
    return lambda _form, _host, _data: Outcome(("event", "event"), whole)


FILES: tuple[BadFile, ...] = (
    BadFile("a BOM", lambda h, r: b"\xef\xbb\xbf" + joined(h, r), whole_lines(has_bom=True)),
    BadFile("CRLF", lambda h, r: b"".join(h.good(r, end=b"\r\n")), whole_lines()),
    BadFile("a BOM and CRLF", lambda h, r: b"\xef\xbb\xbf" + b"".join(h.good(r, end=b"\r\n")),
            whole_lines(has_bom=True)),
    BadFile("blank lines", blank_lines, same(lambda _f, h: ("blank", "event", "blank", *good(h)[1:], "blank"))),
    BadFile("no newline at the end", lambda h, r: joined(h, r)[:-1], unterminated),
    BadFile("a torn end", lambda h, r: joined(h, r)[:-9], lambda f, h, d: unterminated(f, h, d, "text")),
    BadFile("a newline inside a string", broken_string, same(words_of_halves)),
    BadFile("UTF-16 with a BOM", lambda h, r: joined(h, r).decode().encode("utf-16"), refused("not_utf8_file")),
    BadFile("UTF-16, big end first", lambda h, r: joined(h, r).decode().encode("utf-16-be"), refused("not_utf8_file")),
    BadFile("UTF-16 without a BOM", lambda h, r: joined(h, r).decode().encode("utf-16-le"), refused("not_utf8_file")),
    BadFile("UTF-32", lambda h, r: joined(h, r).decode().encode("utf-32"), refused("not_utf8_file")),
    BadFile("a JSON array on one line", lambda h, r: b"[" + b",".join(h.good(r, end=b"")) + b"]\n", skipped(NO_WIRE)),
    BadFile("a JSON array, a record on each line", array_of_lines, same(words_of_array)),
    BadFile("a pretty-printed record", pretty, words_of_pretty),
    # compressed: what stands before the defect is kept
    BadFile("a gzip file", lambda h, r: gzip.compress(joined(h, r)), whole_lines(), ".jsonl.gz"),
    BadFile("a gzip file that is cut", cut_gzip, first_two("compressed_data_broken"), ".jsonl.gz"),
    BadFile("a gzip file with a wrong checksum", wrong_checksum, all_but_a_byte, ".jsonl.gz"),
    BadFile("a gzip file with more behind it", lambda h, r: gzip.compress(joined(h, r)) + b"more",
            whole_lines(whole=("compressed_data_broken",)), ".jsonl.gz"),
    # of zstd the last 128 KiB before a defect cannot be read, and here that is all of it
    BadFile("a zstd file with a corrupt frame", corrupt_zstd, refused("compressed_data_broken"), ".jsonl.zst"),
    BadFile("gzip in gzip", lambda h, r: gzip.compress(gzip.compress(joined(h, r))), skipped(NO_WIRE), ".jsonl.gz"),
    BadFile("gzip of UTF-16", lambda h, r: gzip.compress(joined(h, r).decode().encode("utf-16")),
            refused("not_utf8_file"), ".jsonl.gz"),
    BadFile("a zip bomb", bomb, lambda _f, h, _d: Outcome(good(h), ("compression_ratio",)), ".jsonl.gz",
            {"max_ratio": 100}),
    BadFile("a zip bomb that is allowed", bomb, lambda _f, h, _d: Outcome((*good(h), *["blank"] * BLANKS)),
            ".jsonl.gz"),
    # long and deep
    BadFile("a line over the limit", long_line, same(with_middle("line_too_long")), settings={"max_line_bytes": 1024}),
    BadFile("10,000 levels before the first record", lambda h, r: b'{"a":' * DEEP + b"\n" + joined(h, r),
            same(lambda _f, h: ("too_deep", *good(h)))),
    BadFile("60,000 levels before the first record", lambda h, r: b'{"a":' * 60_000 + b"\n" + joined(h, r),
            same(lambda _f, h: ("too_deep", *good(h)))),
)  # fmt: skip

# files in which no wire can be seen, whatever the form
STRANGERS: dict[str, tuple[bytes, str]] = {
    "an empty file": (b"", EMPTY),
    "an empty gzip file": (gzip.compress(b""), EMPTY),
    "white space": (b" \t\r\n\n  \n", NO_WIRE),
    "a BOM alone": (b"\xef\xbb\xbf", NO_WIRE),
    "CSV": (b"run,tokens,at\nr,7,2026-03-01\n", NO_WIRE),
    "CSV of JSON": (b'run,event\nr,"{""event"":""text""}"\n', NO_WIRE),
    "empty objects": (b"{}\n{}\n", NO_WIRE),
    "NUL bytes": (b"\0" * 100, NO_WIRE),
    "60,000 levels": (b'{"a":' * 60_000, NO_WIRE),
    "60,000 arrays": (b"[" * 60_000 + b"]" * 60_000, NO_WIRE),
    "300 kB of one letter": (b"x" * 300_000, NO_WIRE),
}

FILE_NAMES: tuple[bytes, ...] = (
    b"new\nline.jsonl", b"quo'te\".jsonl", b"\xff\xfe.jsonl", b"caf\xe9.jsonl", "zażółć 🚀.jsonl".encode(),
    b"%2e%2e=x.jsonl", b"-.jsonl", b" .jsonl", b"back\\xff.jsonl", b"glob[1]*.jsonl", b"wire=x.jsonl", b"a;b.jsonl",
    b"$(x).jsonl", b"<b>.jsonl", b"=1+1.jsonl", b"\x1b[31m.jsonl", b"..jsonl", b"x" * 240 + b".jsonl",
)  # fmt: skip

RUN_IDS: tuple[str, ...] = (
    "a/b", "..", "../../x", "/etc/passwd", "q\"uo'te", "new\nline", "50%", "a=b", "🚀", "x" * 10_000, "run#2", "=1+1",
    "<b>bold</b>", "\x1b[31mred", "back\\slash", "a;b", "\u2028", "'; DROP TABLE events; --", "generic-0", "NULL",
)  # fmt: skip
NAMED = tuple(name for name in HOSTS if name != GENERIC)


def quoted(run_id: str) -> str:
    """As it stands inside a JSON string."""
    return json.dumps(run_id)[1:-1]


# -- runs: metaharness numbers its lines from 1 and ends in a marker that counts those before it


def metaharness(
    run: str, *seqs: int, declared: tuple[int, ...] = (), behind: tuple[int, ...] = (), day: int = 1
) -> bytes:
    """A stream with these sequence numbers, end markers that declare so many lines, and lines behind them."""
    host = replace(HOSTS["metaharness"], time=b'"2026-03-%02dT10:00:00Z"' % day)
    lines = [host.fill(host.before[0] if seq == 1 and at == 0 else host.text, run, seq) for at, seq in enumerate(seqs)]
    marker = b'{"format":"metaharness.event/1","seq":@N@,"run":"@RUN@","event":"stream.closed","events":@COUNT@,'
    marker += b'"reason":"completed","run_id":"@RUN@"}'
    lines += [host.fill(marker, run, n + 1, count=b"%d" % n) for n in declared]
    lines += [host.fill(host.text, run, seq) for seq in behind]
    return b"".join(line + b"\n" for line in lines)


def lab(run: str, *seqs: int) -> bytes:
    """Normalized events of Harness Lab, numbered from 0; the last one ends the run."""
    host = HOSTS["harness-lab"]
    templates = [host.before[0], *[host.text] * (len(seqs) - 2), host.after]
    return b"".join(
        host.fill(template, run, seq, text=b'"%d"' % at) + b"\n"
        for at, (template, seq) in enumerate(zip(templates, seqs, strict=True))
    )


@dataclass(frozen=True)
class BadRun:
    """One row: files (@ in a run's name stands for the row), and run → (lines that are events, completeness)."""

    name: str
    files: tuple[bytes, ...]
    runs: dict[str, tuple[int, str]]


RUNS: tuple[BadRun, ...] = (
    BadRun("a stream that is closed", (metaharness("closed", 1, 2, 3, declared=(3,)),), {"closed": (4, "closed")}),
    BadRun("no end marker", (metaharness("open", 1, 2, 3),), {"open": (3, "truncated")}),
    BadRun("closed twice", (metaharness("twice", 1, 2, declared=(2, 3)),), {"twice": (4, "inconsistent")}),
    BadRun("closed twice alike", (metaharness("alike", 1, 2, declared=(2, 2)),), {"alike": (4, "inconsistent")}),
    BadRun("the marker is not last", (metaharness("early", 1, 2, declared=(2,), behind=(4,)),),
           {"early": (4, "inconsistent")}),
    BadRun("the marker declares one too many", (metaharness("many", 1, 2, declared=(3,)),),
           {"many": (3, "inconsistent")}),
    BadRun("the marker declares one too few", (metaharness("few", 1, 2, 3, declared=(2,)),),
           {"few": (4, "inconsistent")}),
    BadRun("a marker alone", (metaharness("alone", declared=(0,)),), {"alone": (1, "closed")}),
    BadRun("a line twice", (metaharness("repeats", 1, 2, 2, 3, declared=(3,)),), {"repeats": (5, "inconsistent")}),
    BadRun("a line is missing", (metaharness("jumps", 1, 2, 4, declared=(4,)),), {"jumps": (4, "inconsistent")}),
    # all lines are there, only not in their order
    BadRun("a number goes back", (metaharness("back", 1, 3, 2, 4, declared=(4,)),), {"back": (5, "closed")}),
    # Harness Lab declares no count: the numbers from 0 without a gap are the only proof
    BadRun("numbers from 0", (lab("lab-whole", 0, 1, 2),), {"lab-whole": (3, "closed")}),
    BadRun("numbers repeat", (lab("lab-repeats", 0, 1, 1, 2),), {"lab-repeats": (4, "inconsistent")}),
    BadRun("numbers jump", (lab("lab-jumps", 0, 1, 3),), {"lab-jumps": (3, "inconsistent")}),
    BadRun("numbers go back", (lab("lab-back", 0, 2, 1, 3),), {"lab-back": (4, "inconsistent")}),
    BadRun("numbers from 1", (lab("lab-late", 1, 2, 3),), {"lab-late": (3, "inconsistent")}),
    # one id in two files: the same content is one run, numbers that go on are one run, others are two
    BadRun("the same run in two files", (metaharness("same", 1, 2, declared=(2,)),) * 2, {"same": (3, "closed")}),
    BadRun("a run that goes on in a second file",
           (metaharness("goes-on", 1, 2), metaharness("goes-on", 3, declared=(3,))),
           {"goes-on": (4, "closed")}),
    BadRun("two runs of one id",
           (metaharness("two", 1, 2, declared=(2,)), metaharness("two", 1, 2, 3, declared=(3,), day=2)),
           {"two": (3, "closed"), "two#2": (4, "closed")}),
)  # fmt: skip
