"""Bad input: a table whose answers were decided in advance. Each row alone, then all of it in one lake."""

from __future__ import annotations

import pytest
from bad_files import FILES, STRANGERS
from bad_hosts import HOSTS
from bad_lines import LINES, ODD_NUMBERS, TIMED, TIMES, TIMES_MS
from helpers import Reader, check_conservation, rebuild

from analytics import reading
from analytics.refusals import NAMES

RUN = "run-1"


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return Reader(tmp_path_factory.mktemp("bad"))


@pytest.fixture
def read(reader):
    """Reads bytes as one file, with the check that nothing of it is lost."""

    def one(data, name="input.jsonl"):
        reader.clear()
        path = reader.folder / name
        path.write_bytes(data)
        record, made = reader.read(path)
        if record.status == "read":
            check_conservation(made)
        return record, made

    return one


def found_on(made, number, host):
    """What became of a line, in the words of the table."""
    parts = [(row["byte_offset"], row["reason"]) for row in made.refusals if row["line"] == number]
    for row in made.events:
        if row["line"] == number and row["payload" if row["raw"] is None else "raw"] is not None:
            known = {host.text_event: "event", host.count_event: "event", "plain_text": "text"}
            parts.append((row["byte_offset"], known.get(row["event"], row["kind"])))
    if any(blank["line"] == number for blank in made.source["blanks"]):
        parts.append((0, "blank"))
    return " + ".join(what for _, what in sorted(parts))


@pytest.mark.parametrize(
    ("name", "form", "line", "columns"), ODD_NUMBERS, ids=[f"{row[0]}-{row[1]}" for row in ODD_NUMBERS]
)
def test_a_number_that_no_column_holds_is_unknown(read, name, form, line, columns):
    host = HOSTS[form]
    lines = host.stream(RUN, host.fill(line, RUN), is_event=True)
    _, made = read(b"".join(lines))
    assert made.reasons() == []
    assert rebuild(made) == b"".join(lines)
    rows = [row for row in made.events if row["line"] == len(host.before) + 1]
    for column, value in columns.items():
        found = {row[column] for row in rows} - {None}
        assert found == ({value} if value is not None else set()), column


CASES = [(row, form) for row in LINES for form in HOSTS]


@pytest.mark.parametrize(("row", "form"), CASES, ids=[f"{row.name}-{form}" for row, form in CASES])
def test_a_bad_line_is_what_the_table_says_and_costs_its_neighbours_nothing(read, row, form):
    host, answer = HOSTS[form], row.answer(form)
    lines = host.stream(RUN, row.make(host, RUN), is_event="event" in answer.split(" + "))
    record, made = read(b"".join(lines))
    number = len(host.before) + 1
    assert (record.wire, made.source["shape"], record.status) == (host.wire, host.shape, "read")
    assert found_on(made, number, host) == answer
    assert {refusal["line"] for refusal in made.refusals} <= {number}
    assert {event["line"] for event in made.events} >= {n for n in range(1, len(lines) + 1) if n != number}
    assert {refusal["byte_offset"] for refusal in made.refusals} <= {
        at + sum(map(len, lines[: number - 1])) for at in range(len(lines[number - 1]))
    }
    assert rebuild_parts(made) == b"".join(lines)
    if answer == "event":
        for column, value in row.expected(form).items():
            seen = [event[column] for event in made.events if event["line"] == number and event[column] is not None]
            assert seen == [value], column


def rebuild_parts(made):
    """The source's bytes; the parts of a line that was cut apart stand one behind the other."""
    pieces = {}
    for row in made.events:
        data = row["raw"] if row["payload"] is None else row["payload"].encode()
        if data is not None:
            pieces.setdefault(row["line"], []).append((row["byte_offset"], data))
    for row in made.refusals:
        pieces.setdefault(row["line"], []).append((row["byte_offset"], row["raw"]))
    if all(len(found) == 1 for found in pieces.values()):
        return rebuild(made)
    return b"".join(b"".join(data for _, data in sorted(pieces[line])) + b"\n" for line in sorted(pieces))


def test_the_answers_of_the_table_are_reasons_or_words_of_the_table():
    words = {"event", "text", "blank"}
    for row in LINES:
        for form in HOSTS:
            assert set(row.answer(form).split(" + ")) <= NAMES | words
        assert set(row.answers) <= {*HOSTS, "*"}


MOMENTS = [(row, form) for row in TIMES for form in TIMED] + [(row, "platonic-core") for row in TIMES_MS]


@pytest.mark.parametrize(("row", "form"), MOMENTS, ids=[f"{row.name}-{form}" for row, form in MOMENTS])
def test_a_time_is_what_it_says_or_unknown(read, row, form):
    host, answer = HOSTS[form], row.answer(form)
    is_event = answer not in NAMES
    lines = host.stream(RUN, host.line(RUN, time=row.value), is_event=is_event)
    _, made = read(b"".join(lines))
    number = len(host.before) + 1
    assert rebuild(made) == b"".join(lines)
    if not is_event:
        assert made.reasons() == [(number, answer)]
        return
    assert made.reasons() == []
    stamps = [row["ts"] for row in made.events if row["line"] == number and row["part"] == 0]
    assert [stamp.isoformat() if stamp is not None else None for stamp in stamps] == [answer]


def words_on(made, number):
    """What became of a line of a file; here any event is an event."""
    parts = [(row["byte_offset"], row["reason"]) for row in made.refusals if row["line"] == number]
    parts += [
        (row["byte_offset"], "text" if row["event"] == "plain_text" else "event")
        for row in made.events
        if row["line"] == number and (row["payload"] is not None or row["raw"] is not None)
    ]
    if any(blank["line"] == number for blank in made.source["blanks"]):
        parts.append((0, "blank"))
    return " + ".join(what for _, what in sorted(parts))


WHOLE = [(row, form) for row in FILES for form in row.forms]


@pytest.mark.parametrize(("row", "form"), WHOLE, ids=[f"{row.name}-{form}" for row, form in WHOLE])
def test_a_bad_file_is_what_the_table_says(tmp_path, monkeypatch, row, form):
    monkeypatch.setattr(reading.Compressed, "FREE_BYTES", 1 << 20)
    host = HOSTS[form]
    data = row.make(host, RUN)
    path = tmp_path / f"input{row.suffix}"
    path.write_bytes(data)
    outcome = row.outcome(form, host, data)
    record, made = Reader(tmp_path, **row.settings).read(path)
    assert [refusal["reason"] for refusal in made.refusals if refusal["line"] is None] == list(outcome.whole)
    if outcome.skipped is not None:
        assert (record.status, record.reason) == ("skipped", outcome.skipped)
        assert (made.events, made.refusals) == ([], [])
        return
    if outcome.is_refused:
        assert (record.status, made.events) == ("refused", [])
        return
    assert (record.status, record.wire, made.source["shape"]) == ("read", host.wire, host.shape)
    check_conservation(made)
    lines = made.source["lines"] - (made.source["pending_bytes"] > 0)
    found = [words_on(made, number) for number in range(1, lines + 1)]
    if "compression_ratio" in outcome.whole:  # how much of the bomb was read before it was refused does not matter
        assert set(found[len(outcome.lines) :]) == {"blank"}
        assert "100 times" in made.refusals[0]["detail"]
        assert found[: len(outcome.lines)] == list(outcome.lines)
        return
    assert found == list(outcome.lines)
    assert (made.source["pending_bytes"], made.source["has_bom"]) == (outcome.pending, outcome.has_bom)
    if "line_too_long" in outcome.reasons:
        assert "the limit is 1024" in made.refusals[0]["detail"]
    if row.suffix == ".jsonl":
        assert rebuild_parts(made) == data


@pytest.mark.parametrize("name", STRANGERS)
def test_a_file_in_which_no_wire_is_seen_is_skipped_with_the_reason(read, name):
    data, reason = STRANGERS[name]
    record, made = read(data)
    assert (record.status, record.reason) == ("skipped", reason)
    assert (made.events, made.refusals) == ([], [])
