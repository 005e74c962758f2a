"""THE list of columns of the lake.

Three record kinds share one Delta table: `event` (one row per fact of a line), `refusal` (one row per refused
line or file) and `source` (one row per revision of an ingested file: the ledger). Everything else that knows
column names, types, units or meanings is rendered from these lists: the Arrow and Delta schemas, the COMMENTs of
`views.sql`, `runlake schema`, and the tests that read each list back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 2

Record = Literal["event", "refusal", "source"]
Type = Literal["text", "int", "float", "bool", "time", "bytes", "texts", "blanks", "pieces"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its logical type and what a value of it says. NULL always means "not said"."""

    name: str
    type: Type
    meaning: str


EVENT: tuple[Column, ...] = (
    # where it stands
    Column("wire", "text", "The wire (format) the line was read as; a partition of the lake."),
    Column("source_id", "text", "The source (file) the line stands in; joins to sources."),
    Column("line", "int", "1-based physical line; in a document, the ordinal of the event over its arrays."),
    Column("part", "int", "0 for the line's first fact, which carries the payload; 1, 2, … for further facts."),
    Column("byte_offset", "int", "Offset of the line's first byte in the (decompressed) source."),
    # who
    Column("run_id", "text", "The run; never NULL."),
    Column(
        "run_id_origin",
        "text",
        "wire = the record said it; parent = a document's enclosing run; source = made from the file.",
    ),
    Column("parent_run_id", "text", "The run that spawned this one."),
    Column("agent_id", "text", "The agent inside the run, where the wire names one."),
    Column("seq", "int", "The wire's own sequence number."),
    Column("ts", "time", "When the record says it happened, UTC; NULL = the record did not say."),
    Column("ts_origin", "text", "Whose clock: vendor, host, harness."),
    # what
    Column("event", "text", "The wire's own name of the event."),
    Column(
        "event_key", "int", "Lake-wide identity of the record, with part; NULL: the record stands in one place only."
    ),
    Column("kind", "text", "Our small vocabulary; see KINDS."),
    Column("is_shadow", "bool", "True: a second view of something another event of the run shows; never counted."),
    # ties
    Column("call_id", "text", "The tool call, as the wire names it."),
    Column("call_occurrence", "int", "1, or n for the n-th time the run opens this call id."),
    Column(
        "call_scope",
        "text",
        "Where the call id is unique: NULL = in the run; else over all runs of that scope (claude, codex, a session, a thread).",
    ),
    Column("parent_call_id", "text", "The call (of a subagent) this event belongs under."),
    Column("turn_id", "text", "The turn, as the wire names it."),
    Column("step", "int", "The wire's step counter."),
    Column("request_id", "text", "The model request (or answer) the row belongs to."),
    Column(
        "requests",
        "int",
        "Model requests this row stands for, once per request_id; 0 where the wire records every request.",
    ),
    # facts
    Column("tool", "text", "The tool's name as the wire gives it."),
    Column("decision", "text", "allow, deny, replace, abstain or ask."),
    Column("decided_by", "text", "Who decided: embedder, frame, policy, human:…, deadline, adapter, hook, vendor, …"),
    Column(
        "evidence",
        "text",
        "How a denial is known: tool.decided, warning, policy, approval, permission_notice, hook, vendor_list, status, …",
    ),
    Column("status", "text", "The wire's own status word (of a result, a limit, a run's end, a warning's code)."),
    Column("outcome", "text", "The wire's verdict on a run or step: success, error, pass, fail, finished, canceled, …"),
    Column("is_error", "bool", "The record says it failed."),
    Column("exit_code", "int", "The exit code of a command or process."),
    Column("reason", "text", "Why: of a denial, a close, a failure."),
    Column("message", "text", "Short human text of a warning, error or retry, cut at 500 characters."),
    Column("path", "text", "The file a file.changed event names."),
    Column("duration_ms", "int", "The record's own measurement, milliseconds."),
    Column("model", "text", "The model, as recorded."),
    Column("effort", "text", "The reasoning effort asked for, as recorded."),
    Column("speed", "text", "The speed mode of the request, as recorded."),
    Column("context_tokens", "int", "Size of the context as the record gauges it; never usage."),
    Column("context_window_tokens", "int", "Size of the model's context window, as recorded."),
    Column("text_chars", "int", "Characters of the text a message, reasoning, injection or result holds."),
    # usage as recorded
    Column("input_tokens", "int", "Input tokens as recorded; see input_includes_cache."),
    Column("cache_read_tokens", "int", "Input tokens read from the cache."),
    Column("cache_write_tokens", "int", "Input tokens written to the cache."),
    Column("cache_write_1h_tokens", "int", "The part of cache_write_tokens kept for an hour."),
    Column("output_tokens", "int", "Output tokens; contains reasoning_tokens."),
    Column("reasoning_tokens", "int", "The reasoning (thinking) part of output_tokens."),
    Column("input_includes_cache", "bool", "True: input_tokens contains the cache columns; False: they add up."),
    Column(
        "usage_scope", "text", "How the figures add up; see USAGE_SCOPES. NULL: not usage, or not known how it adds up."
    ),
    Column("usage_key", "text", "Lake-wide identity of the usage; NULL: unique by run and request_id, else by row."),
    Column("usage_is_final", "bool", "True: these figures will not grow; False: a snapshot; NULL: usage_scope tells."),
    Column("is_side_call", "bool", "True: a helper model outside the main loop, shown beside it, not in token totals."),
    Column("cost_usd", "float", "The vendor's or the harness's own cost, US dollars; never computed here."),
    # limits as recorded
    Column("limit_id", "text", "Which limit."),
    Column("limit_name", "text", "The limit's display name."),
    Column("limit_window_minutes", "int", "Length of the window, minutes."),
    Column("limit_used", "float", "Utilisation as recorded, in limit_unit."),
    Column("limit_unit", "text", "fraction (0–1) or percent (0–100)."),
    Column("limit_resets_at", "time", "When the window resets, UTC."),
    Column("limit_status", "text", "The wire's word: allowed, allowed_warning, rejected, …"),
    # the end of a run
    Column("declared_events", "int", "Lines before an end marker, as the marker declares."),
    Column("end_rule", "text", "On a run's first row: how its end is judged; see END_RULES."),
    Column("speaks", "text", "On a run's first row: space-separated topics its stream can speak of; see TOPICS."),
    # rest
    Column(
        "attributes", "text", "Small JSON object: what a start or end record says of its run; a context's size by lane."
    ),
    Column("payload", "text", "The line itself as JSON text, byte-exact but for redactions; NULL on parts above 0."),
    Column("raw", "bytes", "The line's bytes where they are not UTF-8 text (generic stdout only)."),
    Column("redactions", "int", "How many secrets were replaced in this line."),
)

REFUSAL: tuple[Column, ...] = (
    Column("wire", "text", "The wire the source was read as, or unknown."),
    Column("source_id", "text", "The source the line stands in."),
    Column("path", "text", "The source's path when it was read."),
    Column("line", "int", "1-based physical line; NULL = the whole file was refused."),
    Column("part", "int", "0, or the place among several records on one line."),
    Column("byte_offset", "int", "Offset of the refused bytes in the (decompressed) source."),
    Column("bytes", "int", "How many bytes were refused, line ending not counted."),
    Column("reason", "text", "Why; one of the refusal reasons."),
    Column("detail", "text", "The decoder's or the rule's own words."),
    Column("run_id", "text", "The run, where the refused line itself still names it."),
    Column("seq", "int", "The sequence number, where the refused line itself still names it."),
    Column("raw_sha256", "text", "SHA-256 of the refused bytes before redaction."),
    Column("raw", "bytes", "The refused bytes, redacted; cut at the size limit."),
    Column("redactions", "int", "How many secrets were replaced in raw."),
)

SOURCE: tuple[Column, ...] = (
    Column("wire", "text", "The wire the source was read as, or unknown."),
    Column("source_id", "text", "Identity of the source: a hash of host and path."),
    Column("revision", "int", "1, 2, …: the highest revision of a source_id is the state that holds."),
    Column("ingest_id", "text", "The ingest that wrote this revision."),
    Column("host", "text", "The machine that read it."),
    Column("path", "text", "Absolute path (bytes that are not UTF-8 are backslash-escaped)."),
    Column("shape", "text", "The wire's sub-format, where it has several."),
    Column("status", "text", "read, refused, skipped, copy or gone."),
    Column("status_reason", "text", "Why skipped, refused or gone."),
    Column("copy_of", "text", "For a copy: the source_id that holds the same content."),
    Column("size_bytes", "int", "Size on disk when read."),
    Column("mtime_ns", "int", "Modification time when read, nanoseconds since the epoch."),
    Column("inode", "int", "Inode when read."),
    Column("compression", "text", "gzip or zstd; NULL = none."),
    Column("bytes_read", "int", "Bytes consumed (decompressed), the pending tail not counted."),
    Column("digest", "text", "xxh3-128 of the consumed bytes."),
    Column("lines", "int", "Lines in it: event lines + refused lines + blank lines + 1 for a pending tail."),
    Column("event_lines", "int", "Distinct lines that hold at least one event."),
    Column("events", "int", "Event rows."),
    Column("refused_lines", "int", "Distinct lines that hold a refusal and no event."),
    Column("refusals", "int", "Refusal rows."),
    Column("blank_lines", "int", "Lines of white space only."),
    Column("pending_bytes", "int", "Bytes of the unterminated last line, not yet data."),
    Column("tail", "bytes", "The pending tail, redacted."),
    Column("redactions", "int", "Secrets replaced in events, refusals and tail."),
    Column("is_redacted", "bool", "False: read with --no-redact."),
    Column("has_bom", "bool", "It began with a UTF-8 byte order mark."),
    Column("ends_without_newline", "bool", "The last consumed line had no newline."),
    Column("blanks", "blanks", "The blank lines, to give the bytes back."),
    Column("skeleton", "text", "For a document: the text around the events, a NUL in the place of each."),
    Column("runs", "pieces", "What of which run stands in this source."),
    Column("resume_state", "text", "JSON: what the wire must know to read on from bytes_read."),
    Column("began_at", "time", "The first time that stands in it, in row order; of copies the oldest source owns."),
    Column("first_seen", "time", "When it was first read."),
    Column("last_seen", "time", "When this revision was read."),
    Column("runlake_version", "text", "The runlake that read it."),
)

PIECE: tuple[Column, ...] = (
    Column("run_id", "text", "The run as the wire names it."),
    Column("first_line", "int", "Its first line in the source."),
    Column("last_line", "int", "Its last line in the source."),
    Column("lines", "int", "Its lines that hold events."),
    Column("events", "int", "Its event rows."),
    Column("first_seq", "int", "Lowest sequence number."),
    Column("last_seq", "int", "Highest sequence number."),
    Column("seq_breaks", "int", "Places where a sequence number is not its predecessor plus one."),
    Column("first_ts", "time", "Earliest time."),
    Column("last_ts", "time", "Latest time."),
    Column("first_key", "int", "event_key of its first record that has one: where a process of a session began."),
    Column("running_total", "int", "Highest input + output of its running totals, where they run on over runs."),
    Column("digest", "text", "Sum modulo 2^64 of the xxh3-64 of its event lines, hexadecimal."),
    Column("is_shared", "bool", "True: the wire spreads one run over several sources; pieces never make a second run."),
)

RECORDS: dict[Record, tuple[Column, ...]] = {"event": EVENT, "refusal": REFUSAL, "source": SOURCE}

KINDS: tuple[str, ...] = (
    "run.started", "run.ended", "stream.closed", "turn.started", "turn.ended", "step.entered", "step.left",
    "message", "reasoning", "injection", "request", "tool.offered", "tool.requested", "tool.decided", "tool.started",
    "tool.finished", "file.changed", "usage", "rate_limit", "retry", "error", "warning", "compaction", "approval",
    "context", "auth.expired", "system", "opaque",
)  # fmt: skip

USAGE_SCOPES: dict[str, str] = {
    "delta": "adds up: every row counts",
    "snapshot": "several rows of one request repeat or grow; the largest output of a request counts",
    "cumulative": "running total of the run; the last counts (with usage_key: of a series of runs, so less the run before)",
    "final": "the run's total; it replaces every other row of the run",
    "turn_total": "the total of one turn, side calls included; it adds up, and replaces the deltas and snapshots of the run",
    "cost": "a cost without tokens; it adds to the run's cost",
}

END_RULES: dict[str, str] = {
    "counted": "a stream.closed must be the last line and declare the number of lines before it; none = truncated",
    "sequenced": "a run.ended must exist and sequence numbers run from 0 without a hole; none = truncated",
    "replayed": "a run.ended closes the run; none = open, the run may go on",
    "marked": "a run.ended closes the run; none = truncated",
    "turns": "every turn that started must have ended; one that has not = open; no turns marked = undecidable",
    "none": "the wire writes no end; completeness is undecidable",
}

TOPICS: dict[str, str] = {
    "tokens": "token usage", "cost": "cost in US dollars", "limits": "rate limits", "decisions": "allow and deny",
    "results": "results of tool calls", "starts": "starts of tool calls, apart from requests",
    "offered": "the tools offered", "withheld": "the tools withheld", "clock": "times", "outcome": "the run's verdict",
}  # fmt: skip


@cache
def arrow_type(kind: Type) -> pa.DataType:
    """The Arrow type of a logical type. Times are microseconds UTC; counters are 64 bit."""
    import pyarrow as pa  # noqa: PLC0415 (0.1 s, which who only asks for names need not wait for)

    scalars: dict[str, pa.DataType] = {
        "text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "bytes": pa.binary(),
        "time": pa.timestamp("us", "UTC"), "texts": pa.list_(pa.string()),
    }  # fmt: skip
    if kind == "blanks":
        return pa.list_(pa.struct([pa.field("line", pa.int64()), pa.field("text", pa.binary())]))
    if kind == "pieces":
        return pa.list_(pa.struct([pa.field(c.name, arrow_type(c.type)) for c in PIECE]))
    return scalars[kind]


@cache
def arrow_schema(record: Record, *, with_partitions: bool = False) -> pa.Schema:
    """Schema of one record kind's Parquet files. `record` and `wire` are Hive partitions, so files leave them out."""
    import pyarrow as pa  # noqa: PLC0415 (the same)

    names = [c for c in RECORDS[record] if with_partitions or c.name != "wire"]
    return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in names])


@cache
def table_schema() -> pa.Schema:
    """Schema of the Delta table: the union of all record kinds, one type per name (checked)."""
    import pyarrow as pa  # noqa: PLC0415 (the same)

    types: dict[str, pa.DataType] = {"record": pa.string(), "wire": pa.string()}
    for record in RECORDS.values():
        for column in record:
            arrow = arrow_type(column.type)
            if types.setdefault(column.name, arrow) != arrow:
                raise TypeError(f"column {column.name} has two types in the lake: {types[column.name]} and {arrow}")
    return pa.schema([pa.field(name, arrow) for name, arrow in types.items()])
