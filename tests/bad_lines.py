"""Bad input, one line at a time: each row says what stands between two good lines, and what becomes of it.

An answer is a refusal reason; or what the line is read as: `event` (what it says), `text` (plain text, which is data in
captures of stdout), `blank`. `a + b`: two records were found on the one line.
An answer for "*" holds for every form that has none of its own. The answers come from the notes on the formats; where
those leave one open, the reason stands beside the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bad_hosts import HOSTS, Host

DEEP = 10_000
GENERIC, STREAM, EXEC, CODE = "generic stdout", "claude-stream", "codex-exec", "claude-code"


@dataclass(frozen=True)
class BadLine:
    """One row: how the line is made, the answer per form, and columns that the event must have."""

    name: str
    make: Callable[[Host, str], bytes]
    answers: dict[str, str]
    columns: dict[str, dict[str, object]] = field(default_factory=dict)  # per form ("*": all), column → value

    def answer(self, form: str) -> str:
        """What becomes of the line in this form."""
        return self.answers.get(form, self.answers["*"])

    def expected(self, form: str) -> dict[str, object]:
        """The columns of the event."""
        return self.columns.get(form, self.columns.get("*", {}))


def text(value: bytes) -> Callable[[Host, str], bytes]:
    """The line with this JSON string for its text."""
    return lambda host, run: host.line(run, text=value)


def count(value: bytes) -> Callable[[Host, str], bytes]:
    """The line with this for its count of input tokens."""
    return lambda host, run: host.line(run, "count", count=value)


def more(value: bytes) -> Callable[[Host, str], bytes]:
    """The line with another member at its end."""
    return lambda host, run: host.line(run, extra=b"," + value)


def bare(value: bytes) -> Callable[[Host, str], bytes]:
    """The line is just this."""
    return lambda _host, _run: value


def changed(change: Callable[[bytes], bytes]) -> Callable[[Host, str], bytes]:
    """The good line, changed."""
    return lambda host, run: change(host.line(run))


AGAIN = {
    "metaharness": b'"text":"bb"', "platonic-core": b'"step":0', "harness-lab": b'"payload":{"text":"bb"}',
    GENERIC: b'"payload":{"text":"bb"}', EXEC: b'"item":{"id":"item_0","type":"agent_message","text":"bb"}',
    "codex-rollout": b'"message":"bb"', STREAM: b'"uuid":"again"', CODE: b'"uuid":"again"',
}  # fmt: skip

# texts between the records are data where the stream is what a process printed
NOISE = {GENERIC: "text", STREAM: "text", EXEC: "text"}
# a counter that is no whole number is malformed for metaharness (its own word); Harness Lab takes what int() takes
LOOSE = {"harness-lab": "event", GENERIC: "event"}
NUMBERS = {"*": "number_out_of_range", "metaharness": "malformed"}

LINES: tuple[BadLine, ...] = (
    # how text is written
    BadLine("a CR before the newline", changed(lambda line: line + b"\r"), {"*": "event"}),
    BadLine("spaces around", changed(lambda line: b" \t" + line + b" \t"), {"*": "event"}),
    BadLine("an escaped CR in a string", text(b'"a\\rb"'), {"*": "event"}),
    # JSON allows no raw control character in a string; to the generic protocol what is no JSON is text
    BadLine("a lone CR in a string", text(b'"a\rb"'), {"*": "not_json", GENERIC: "text"}),
    BadLine("a tab in a string", text(b'"a\tb"'), {"*": "not_json", GENERIC: "text"}),
    BadLine(
        "U+2028, U+2029 and U+0085 in a string", text('"a\u2028b\u2029c\u0085d"'.encode()), {"*": "event"},
        {form: {"text_chars": 7} for form in ("metaharness", "harness-lab", GENERIC, EXEC)},
    ),
    BadLine("a form feed alone", bare(b"\f"), {"*": "not_json", **NOISE}),
    BadLine("an empty line", bare(b""), {"*": "blank"}),
    BadLine("white space alone", bare(b" \t  "), {"*": "blank"}),
    BadLine("a CR alone", bare(b"\r"), {"*": "blank"}),
    # A file glued behind another keeps its BOM. The harnesses' own readers refuse such a line; to the generic protocol
    # it is text, since U+FEFF is no white space there; the readers of native transcripts, which mend what is no fault
    # of the record, lose nothing by reading it.
    BadLine(
        "a BOM in the middle of the file", changed(lambda line: b"\xef\xbb\xbf" + line),
        {"*": "event", "metaharness": "not_json", "platonic-core": "not_json", "harness-lab": "not_json",
         GENERIC: "text"},
    ),
    # bytes
    # the generic protocol decodes with replacement, so the record is the record that it is
    BadLine("a byte that is no UTF-8 in a string", text(b'"a\xffb"'), {"*": "invalid_utf8", GENERIC: "event"}),
    BadLine(
        "a byte that is no UTF-8 in a field nobody reads", more(b'"x":"\xff"'), {"*": "invalid_utf8", GENERIC: "event"}
    ),
    BadLine("Latin-1 text", bare(b"caf\xe9"), {"*": "invalid_utf8", **NOISE}),
    # zeros are what a crash leaves of a write; a stream of ours that holds them is damaged
    BadLine("nothing but NUL bytes", bare(b"\0" * 50), {"*": "nul_byte", GENERIC: "text"}),
    BadLine("a NUL byte in a string", text(b'"a\0b"'), {"*": "nul_byte", GENERIC: "text"}),
    BadLine("an escaped NUL in a string", text(b'"a\\u0000b"'), {"*": "event"}),
    # clients cut long texts by UTF-16 units, so native transcripts hold halves; the harnesses write none
    BadLine(
        "half of a surrogate pair", text(b'"a\\ud83d"'),
        {"*": "event", "metaharness": "not_json", "platonic-core": "not_json", "harness-lab": "not_json"},
    ),
    BadLine("a surrogate pair", text(b'"\\ud83d\\ude80"'), {"*": "event"}),
    # what is no record
    BadLine("plain text", bare(b"npm notice"), {"*": "not_json", **NOISE}),
    BadLine("CSV", bare(b"run,tokens,at"), {"*": "not_json", **NOISE}),
    BadLine("a number", bare(b"17"), {"*": "not_an_object", **NOISE}),
    BadLine("a string", bare(b'"text"'), {"*": "not_an_object", **NOISE}),
    BadLine("null", bare(b"null"), {"*": "not_an_object", **NOISE}),
    BadLine("an array", bare(b"[1]"), {"*": "not_an_object", **NOISE}),
    BadLine(
        "an array around the record", changed(lambda line: b"[" + line + b"]"), {"*": "not_an_object", **NOISE}
    ),
    BadLine("a record that breaks off", changed(lambda line: line[:-9]), {"*": "not_json", GENERIC: "text"}),
    BadLine("a record with a comma behind it", changed(lambda line: line + b","),
            {"*": "trailing_text", GENERIC: "text", STREAM: "event + text", CODE: "event + torn_record"}),
    # only the Claude wires, whose writers are known to lose newlines, have glued records cut apart
    BadLine("two records on one line", changed(lambda line: line + line),
            {"*": "trailing_text", GENERIC: "text", STREAM: "event + event", CODE: "event + event"}),
    BadLine("a record with text behind it", changed(lambda line: line + b" and more"),
            {"*": "trailing_text", GENERIC: "text", STREAM: "event + text", CODE: "event + torn_record"}),
    BadLine("a record behind a torn one", changed(lambda line: line[:40] + line),
            {"*": "not_json", GENERIC: "text", STREAM: "torn_record + event", CODE: "torn_record + event"}),
    # how deep it goes
    BadLine("10,000 arrays", more(b'"x":' + b"[" * DEEP + b"]" * DEEP), {"*": "too_deep"}),
    BadLine("10,000 objects", more(b'"x":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP), {"*": "too_deep"}),
    BadLine("10,000 objects without an end", bare(b'{"a":' * DEEP), {"*": "too_deep"}),
    # numbers. NaN and Infinity are no JSON; to the generic protocol they kill its reader, so the line is no text
    BadLine("NaN", count(b"NaN"), {"*": "not_json"}),
    BadLine("Infinity", count(b"Infinity"), {"*": "not_json"}),
    BadLine("-Infinity", count(b"-Infinity"), {"*": "not_json"}),
    # Claude's gateways write whole counters with a point, Harness Lab takes what int() takes; the others write u64
    BadLine("1e3", count(b"1e3"), {**NUMBERS, **LOOSE, STREAM: "event", CODE: "event"}, {"*": {"input_tokens": 1000}}),
    BadLine("10.0", count(b"10.0"), {**NUMBERS, **LOOSE, STREAM: "event", CODE: "event"}, {"*": {"input_tokens": 10}}),
    # int(10.5) is 10, which is what Harness Lab itself adds up
    BadLine("10.5", count(b"10.5"), {**NUMBERS, **LOOSE}, {"*": {"input_tokens": 10}}),
    BadLine("a negative count", count(b"-1"), NUMBERS),
    BadLine("minus zero", count(b"-0"), {"*": "event"}, {"*": {"input_tokens": 0}}),
    # beyond any account's use, and a few of them would overflow every sum over the lake; platonic-core's are 32 bits
    BadLine("10^15", count(b"1000000000000000"), {"*": "event", "platonic-core": "number_out_of_range"},
            {"*": {"input_tokens": 10**15}}),
    BadLine("10^15 + 1", count(b"1000000000000001"), {"*": "number_out_of_range"}),
    BadLine("2^63 - 1", count(b"9223372036854775807"), {"*": "number_out_of_range"}),
    BadLine("2^63", count(b"9223372036854775808"), {"*": "number_out_of_range"}),
    BadLine("2^64", count(b"18446744073709551616"), {"*": "number_out_of_range"}),
    BadLine("40 digits", count(b"9" * 40), {"*": "number_out_of_range"}),
    BadLine("1e400", count(b"1e400"), NUMBERS),
    BadLine("a count as text", count(b'"7"'), {"*": "malformed", **LOOSE}, {"*": {"input_tokens": 7}}),
    # keys: of duplicates the last holds. platonic-core's crate refuses them; nothing is lost by reading on
    BadLine(
        "a key twice", lambda host, run: host.line(run, extra=b"," + AGAIN[form_of(host)]), {"*": "event"},
        {form: {"text_chars": 2} for form in ("metaharness", "harness-lab", GENERIC, EXEC)},
    ),
    BadLine(
        "keys that differ in case only", more(b'"Text":"bbb","SEQ":5,"Run":"z","KIND":"usage","Type":"x"'),
        {"*": "event", "platonic-core": "unknown_field"},
        {form: {"text_chars": 1} for form in ("metaharness", "harness-lab", GENERIC, EXEC)},
    ),
    BadLine("a field that nobody knows", more(b'"tide":{"a":[1,null]}'),
            {"*": "event", "platonic-core": "unknown_field"}),
    BadLine("an empty key", more(b'"":1'), {"*": "event", "platonic-core": "unknown_field"}),
    # an object that names nothing: another program's words in a capture, a damaged line elsewhere
    BadLine(
        "an empty object", bare(b"{}"),
        {"*": "unknown_event", "metaharness": "unknown_format", "platonic-core": "not_a_record",
         "harness-lab": "malformed", GENERIC: "text", STREAM: "text", EXEC: "text"},
    ),
)  # fmt: skip


def form_of(host: Host) -> str:
    """The name of a form."""
    return next(name for name, one in HOSTS.items() if one is host)


WIDE = b"9" * 400  # more than a float holds
ENDLESS = b"9" * 5000  # more than Python reads as an integer
_LAB = b'{"event_id":"evt_w","run_id":"@RUN@","sequence":1,"kind":"usage","name":"result_usage","payload":{'
_STREAM = b'{"session_id":"@RUN@","uuid":"w","type":'

# Numbers that no column can hold, where no counter stands: the record is what it is, the number is unknown.
ODD_NUMBERS: tuple[tuple[str, str, bytes, dict[str, object]], ...] = (
    ("a cost of 400 digits", "harness-lab", _LAB + b'"input_tokens":1,"final":true,"total_cost_usd":' + WIDE + b"}}",
     {"cost_usd": None, "input_tokens": 1, "usage_scope": "final"}),
    ("a cost of 400 digits", STREAM, _STREAM + b'"result","subtype":"success","total_cost_usd":' + WIDE + b',"usage":'
     b'{"input_tokens":1,"output_tokens":2},"num_turns":' + WIDE + b',"duration_ms":' + WIDE + b"}",
     {"cost_usd": None, "duration_ms": None, "status": "success"}),
    ("a limit of 400 digits", STREAM, _STREAM + b'"rate_limit_event","rate_limit_info":{"status":"allowed",'
     b'"rateLimitType":"five_hour","resetsAt":' + WIDE + b',"utilization":' + WIDE + b"}}",
     {"limit_used": None, "limit_resets_at": None, "limit_status": "allowed"}),
    ("a limit that resets in epoch milliseconds", STREAM, _STREAM + b'"rate_limit_event","rate_limit_info":{"status":'
     b'"allowed","rateLimitType":"five_hour","resetsAt":1772359200000,"utilization":1}}',
     {"limit_used": 1.0, "limit_resets_at": None}),
    ("a model's cost of 400 digits", STREAM, _STREAM + b'"result","subtype":"success","total_cost_usd":1.5,'
     b'"modelUsage":{"m":{"inputTokens":1,"outputTokens":2,"costUSD":' + WIDE + b"}}}", {"status": "success"}),
    ("a retry of 5,000 digits", EXEC, b'{"type":"error","message":"retry ' + ENDLESS + b"/" + ENDLESS + b'"}',
     {"event": "error"}),
    ("a limit that resets beyond all time", "codex-rollout",
     (b'{"timestamp":"9999-12-31T23:00:00Z","type":"event_msg",'
     b'"payload":{"type":"token_count","info":null,"rate_limits":{"primary":{"used_percent":5,"window_minutes":300,'
     b'"resets_in_seconds":253402300799}}}}'), {"limit_used": 5.0, "limit_resets_at": None}),
    ("an exit code of 5,000 digits", "codex-rollout", b'{"timestamp":"2026-03-01T10:00:00Z","type":"response_item",'
     b'"payload":{"type":"function_call_output","call_id":"c","output":"Wall time: ' + WIDE + b" seconds\\nProcess "
     b"exited with code " + ENDLESS + b'\\nOutput:\\n"}}', {"exit_code": None, "duration_ms": None}),
)  # fmt: skip


@dataclass(frozen=True)
class BadTime:
    """One row: a time as it is written, and the moment (ISO, UTC) that is read from it per form, or the refusal."""

    name: str
    value: bytes
    answers: dict[str, str | None]

    def answer(self, form: str) -> str | None:
        """The moment, None for unknown, or a refusal reason."""
        return self.answers.get(form, self.answers["*"])


TEN = "2026-03-01T10:00:00+00:00"
TIMED = ("metaharness", "harness-lab", STREAM, "codex-rollout", CODE)
NO_TEXT = {"metaharness": "malformed", "harness-lab": "malformed"}

# A time is never guessed: without a zone it is unknown (but Harness Lab's, whose export drops the zone and is UTC), and
# metaharness passes on what a vendor wrote, of which its own reader knows only what ends in Z.
TIMES: tuple[BadTime, ...] = (
    BadTime("UTC", b'"2026-03-01T10:00:00Z"', {"*": TEN}),
    BadTime("a zone", b'"2026-03-01T12:00:00+02:00"', {"*": TEN, "metaharness": None}),
    BadTime("no zone", b'"2026-03-01T10:00:00"', {"*": None, "harness-lab": TEN}),
    BadTime("a zone by name", b'"2026-03-01T10:00:00 Europe/Brussels"', {"*": None}),
    BadTime("nanoseconds", b'"2026-03-01T10:00:00.000001999Z"', {"*": "2026-03-01T10:00:00.000001+00:00"}),
    BadTime("epoch seconds", b"1772359200", {"*": None, **NO_TEXT}),
    BadTime("epoch milliseconds", b"1772359200000", {"*": None, **NO_TEXT}),
    BadTime("epoch seconds as text", b'"1772359200"', {"*": None}),
    # of this one a lenient reader of ISO 8601 makes the 23rd of January 1712
    BadTime("epoch milliseconds as text", b'"1712012310159"', {"*": None}),
    BadTime("year 0001", b'"0001-01-01T00:00:00Z"', {"*": "0001-01-01T00:00:00+00:00"}),
    BadTime("before year 0001 in UTC", b'"0001-01-01T00:00:00+14:00"', {"*": None}),
    BadTime("year 0000", b'"0000-01-01T00:00:00Z"', {"*": None}),
    BadTime("the last second of 9999", b'"9999-12-31T23:59:59Z"', {"*": "9999-12-31T23:59:59+00:00"}),
    BadTime("after year 9999 in UTC", b'"9999-12-31T23:59:59-14:00"', {"*": None}),
    BadTime("year 10000", b'"10000-01-01T00:00:00Z"', {"*": None}),
    # no clock of ours has a 61st second, and the one before or behind it would be a guess
    BadTime("a leap second", b'"2016-12-31T23:59:60Z"', {"*": None}),
    BadTime("the 30th of February", b'"2026-02-30T10:00:00Z"', {"*": None}),
    BadTime("an empty string", b'""', {"*": None}),
    BadTime("words", b'"yesterday"', {"*": None}),
    BadTime("null", b"null", {"*": None}),
)

# platonic-core declares milliseconds since 1970, so that is how a figure is read whatever the writer meant
TIMES_MS: tuple[BadTime, ...] = (
    BadTime("milliseconds", b"1772359200000", {"*": TEN}),
    BadTime("seconds", b"1772359200", {"*": "1970-01-21T12:19:19.200000+00:00"}),
    BadTime("zero", b"0", {"*": "1970-01-01T00:00:00+00:00"}),
    BadTime("microseconds: the year 58133", b"1772359200000000", {"*": None}),
    BadTime("the largest of 63 bits", b"9223372036854775807", {"*": None}),
    BadTime("beyond 63 bits", b"9223372036854775808", {"*": "number_out_of_range"}),
    BadTime("negative", b"-1", {"*": "number_out_of_range"}),
    BadTime("a fraction", b"1.5", {"*": "number_out_of_range"}),
    BadTime("text", b'"2026-03-01T10:00:00Z"', {"*": "malformed"}),
    BadTime("null", b"null", {"*": "malformed"}),
)
