"""Why a line or a file is refused: one literal list. Docs, `runlake schema` and the fixtures' test read it back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: its name, what was seen, and what a person can do."""

    name: str
    seen: str
    remedy: str


REASONS: tuple[Reason, ...] = (
    # any wire, one line
    Reason("not_json", "The line is not JSON (or a JSON text that breaks off).", "Look at the writer; the raw bytes are kept."),
    Reason("not_an_object", "The line is JSON, but not an object.", "Each line must be one JSON object."),
    Reason("trailing_text", "A whole JSON object is followed by more text on the same line.", "Look for a writer that lost a newline."),
    Reason("torn_record", "A record breaks off, and another one begins on the same line.", "A killed writer; the other record is kept."),
    Reason("invalid_utf8", "The line holds bytes that are not UTF-8.", "Re-encode the source, or keep the refusal: raw has the bytes."),
    Reason("nul_byte", "The line holds NUL bytes.", "Usually a torn write after a crash; nothing to read."),
    Reason("line_too_long", "The line is longer than the limit.", "Raise --max-line-bytes."),
    Reason("too_deep", "The line nests deeper than the decoder goes.", "No known wire nests this deep; look at the writer."),
    Reason("number_out_of_range", "A counter is negative, fractional, beyond 10^15 tokens, or does not fit 64 bits.", "Look at the writer."),
    Reason("unknown_format", "The line carries no format tag, or one of another format or version.", "A newer wire version needs a newer runlake."),
    Reason("unknown_event", "The line names an event the wire does not have.", "A newer wire version needs a newer runlake."),
    Reason("malformed", "A known event does not fit its shape: a field is missing or has another type.", "detail names the field."),
    # platonic-core
    Reason("unknown_field", "platonic-core forbids fields it does not know.", "A newer crate needs a newer runlake."),
    Reason("not_a_record", "The line is not of the nesting the file has (bare event, record, ledger line).", "Do not mix nestings in one file."),
    Reason("blank_id", "An identifier is empty or white space.", "Look at the writer."),
    Reason("foreign_run_id", "The line names another run than its file.", "One ledger file holds one run."),
    Reason("sequence_mismatch", "The sequence number is not the next one.", "detail names the expected and the found number."),
    Reason("illegal_transition", "The event is not legal in the phase the run is in.", "detail names the phase and the event."),
    Reason("turn_mismatch", "The event names another turn than the one in progress.", "detail names both."),
    Reason("turn_reused", "A turn id is used a second time.", "detail names it."),
    Reason("step_mismatch", "The step is not the expected one.", "detail names both."),
    Reason("call_mismatch", "The event names another tool call than the one in progress.", "detail names both."),
    Reason("call_reused", "A call id is used a second time.", "detail names it."),
    Reason("unproposed_call", "The validated call equals none that the model proposed.", "detail names the tool."),
    Reason("context_budget_exceeded", "The context's fragments add up to more than its budget.", "detail names both."),
    Reason("invalid_compaction_range", "A compaction drops an empty or inverted range of turns.", "detail names it."),
    Reason("empty_rejection_reason", "A rejection of proposals gives no reason.", "Look at the writer."),
    # whole files
    Reason("not_utf8_file", "The file is UTF-16 or UTF-32, not UTF-8.", "Convert it to UTF-8."),
    Reason("compressed_data_broken", "The compressed data is cut or corrupt.", "What could be decompressed is kept; get a whole copy."),
    Reason("compression_ratio", "The file expands beyond the allowed ratio.", "A decompression bomb, or raise --max-ratio."),
    Reason("read_error", "The file could not be read to its end.", "detail has the system's words; ingest it again."),
    Reason("document_malformed", "The file is one JSON document, but not of the shape its wire has.", "detail names the place."),
    Reason("other_agent", "The file is the transcript of another agent, which no wire here reads.", "detail names the agent; name a --wire to read it nevertheless."),
    Reason("document_too_large", "The document is larger than can be read at once.", "Raise --max-document-bytes."),
)  # fmt: skip

NAMES: frozenset[str] = frozenset(reason.name for reason in REASONS)
