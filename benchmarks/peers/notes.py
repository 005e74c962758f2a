"""Why a figure of a tool is not that of the truth: one note for each difference seen.

Numbered reports are the public bug reports that `tests/fixtures/native/expected.json` numbers; native.md is the file of
rules they come from, which the native wires follow and which is no part of this repository.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """`where`: "traps", a variant or a case. `fields`: which figures it explains; none = all of them there."""

    tool: str
    where: str
    fields: tuple[str, ...]
    text: str


NOTES = (
    Note("ccusage", "traps", ("claude.messages", "codex.turns"), "Its reports count tokens, not requests."),
    Note(
        "ccusage",
        "traps",
        ("claude.tool_uses", "claude.unfinished", "claude.denied", "codex.tool_calls", "codex.unfinished"),
        "It reads no tool calls.",
    ),
    Note("ccusage", "traps", ("codex.limit_windows", "codex.primary_peak_percent"), "It reads no rate limits."),
    Note(
        "agentsview",
        "traps",
        ("claude.messages",),
        "Requests that it prices: the answer without `usage` is not among them.",
    ),
    Note(
        "agentsview",
        "traps",
        ("claude.tool_uses", "claude.unfinished"),
        "Rows of its table of calls: those that the resumed file repeats stand there a second time, under that file's "
        "session (reports 19 and 20).",
    ),
    Note(
        "agentsview",
        "traps",
        ("claude.denied",),
        "It has no figure for denials: a denied call is one with the outcome `errored`.",
    ),
    Note(
        "agentsview",
        "traps",
        ("claude.session list",),
        "`total_output_tokens` of its sessions adds the resumed file's copies again (reports 8, 17, 19). Its usage "
        "reports do not.",
    ),
    Note("agentsview", "traps", ("codex.reasoning",), "It keeps no reasoning tokens of rollouts."),
    Note("agentsview", "traps", ("codex.limit_windows", "codex.primary_peak_percent"), "It keeps no rate limits."),
    Note(
        "ccusage",
        "spaced",
        (),
        'It looks for byte patterns such as `"usage":{` and `"type":"token_count"` before it parses a line: with a '
        "space after the colon nothing is found, and nothing is said.",
    ),
    Note(
        "agentsview",
        "renamed",
        (),
        "It takes rollouts by file name, so the renamed ones are not read; session files under another name than "
        "the id in their rows are taken for children of a session that is not there, and its export by session leaves "
        "such out. Identity is in the rows (native.md, 1 and 3).",
    ),
    Note(
        "ccusage",
        "copied",
        (),
        "Its day report counts an archived rollout once, its session report twice (report 61): the two disagree.",
    ),
    Note("ccusage", "glued", (), "A line with two records is dropped, both of them (report 29)."),
    Note(
        "agentsview", "glued", (), "A line with two records is dropped, both of them (report 29); it counts such lines."
    ),
    Note("ccusage", "zst", (), "Compressed rollouts are skipped without a word (report 67)."),
    Note(
        "agentsview",
        "cs-growing-blocks",
        (),
        "By day and model it is right; its export by session leaves out files under another name than the id in their "
        "rows, and whatever else it takes for a child of a session that is not there.",
    ),
    Note(
        "ccusage",
        "cs-side-question",
        (),
        "Its day report is right; its session report counts the parent's answers that side question and compaction "
        "files repeat (reports 12 and 15).",
    ),
    Note(
        "agentsview",
        "cs-side-question",
        (),
        "Answers that a side question repeats under another `requestId` count again: the key is not `message.id` alone "
        "(reports 12 and 15).",
    ),
    Note(
        "ccusage",
        "cs-gateway-rows",
        (),
        "The day report adds every row that lacks `message.id` or `requestId` (reports 5 and 9 to 11). The session "
        "report puts rows of one `message.id` together, but not rows of one `requestId` (native.md, 1, rule 2).",
    ),
    Note(
        "agentsview",
        "cs-gateway-rows",
        (),
        "Rows without `message.id` are not put together by `requestId`: the snapshot is added to the last row "
        "(native.md, 1, rule 2).",
    ),
    Note(
        "ccusage",
        "cs-agent-progress",
        (),
        "Of an answer that stands in `agent_progress` rows and in the subagent's file the day report keeps the early "
        "snapshot of the former (reports 1 to 3); the session report leaves out answers that stand in such rows only "
        "(report 16).",
    ),
    Note(
        "agentsview",
        "cs-agent-progress",
        (),
        "Answers that stand in `agent_progress` rows only are left out (report 16).",
    ),
    Note(
        "ccusage",
        "cs-broken-lines",
        (),
        "Lines that hold two records, or a stub and a record, are dropped whole (reports 29 and 30).",
    ),
    Note(
        "agentsview",
        "cs-broken-lines",
        (),
        "Lines that hold two records, or a stub and a record, are dropped whole (reports 29 and 30); it counts them.",
    ),
    Note(
        "ccusage",
        "cs-cache-write-split",
        (),
        "Cache writes are the sum of the 5-minute and 1-hour parts: a remainder is lost, a split above the total is "
        "believed (report 27; native.md, 1, rule 6).",
    ),
    Note(
        "agentsview",
        "cs-calls-across-files",
        (),
        "By day and model it is right; its export by session leaves out files under another name than the id in their "
        "rows, and whatever else it takes for a child of a session that is not there.",
    ),
    Note(
        "agentsview",
        "cr-repeated-totals",
        (),
        "It adds `last_token_usage` and drops one that equals the one before: two equal requests become one "
        "(native.md, 3, rule 2).",
    ),
    Note("agentsview", "cr-limit-generations", (), "The same: requests of equal size are lost."),
    Note(
        "agentsview",
        "cr-limit-ids-and-nulls",
        (),
        "The same: requests of equal size are lost.",
    ),
    Note(
        "ccusage",
        "cr-restart-and-estimate",
        (),
        "It adds `last_token_usage`: the request whose event was never written is missing (native.md, 3, rule 2).",
    ),
    Note(
        "agentsview",
        "cr-restart-and-estimate",
        (),
        "It adds `last_token_usage`: the request whose event was never written is missing (native.md, 3, rule 2).",
    ),
    Note(
        "agentsview",
        "cr-missing-parent-siblings",
        (),
        "Each child of a missing parent counts the replayed prefix again (reports 53, 54, 57); the export by session "
        "leaves out the one child whose parent it has found named.",
    ),
    Note(
        "ccusage",
        "cr-copies-pages-zst",
        (),
        "The compressed rollout is skipped (report 67), the second page counts the repeated total again (report 68), "
        "the session report counts the archived copy, too (report 61).",
    ),
    Note(
        "agentsview",
        "cr-copies-pages-zst",
        (),
        "Of a paginated thread one page is kept (report 68).",
    ),
)


def explain(tool: str, where: str, fields: set[str]) -> tuple[str, ...]:
    """What the notes say of these differences; a field no note speaks of says so, too."""
    found = [note for note in NOTES if note.tool == tool and note.where == where]
    said = tuple(note.text for note in found if not note.fields or fields & set(note.fields))
    if any(not note.fields for note in found):
        return said
    left = fields - {name for note in found for name in note.fields}
    return said + ((UNEXPLAINED + ", ".join(sorted(left)),) if left else ())


UNEXPLAINED = "NO EXPLANATION: "
