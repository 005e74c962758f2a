"""Damaged streams of each wire: a short search in every run, and what longer ones (tests/fuzz/run.py) have found."""

from __future__ import annotations

import random

import pytest
from fuzz import oracle, run
from helpers import FIXTURES

from analytics.wires import BY_NAME

FOUND = {path.name: path.read_bytes() for path in sorted((FIXTURES / "fuzz").iterdir())}
INPUTS = 40
IN_THE_LAKE = 12  # per wire


@pytest.fixture(scope="module")
def seeds():
    """A fixed one and a new one; a failure says which input it was, and `tests/fuzz/run.py` makes it again."""
    return 1, random.SystemRandom().randrange(1_000_000)


@pytest.mark.parametrize("wire", BY_NAME)
def test_whatever_stands_in_a_stream_it_is_read(tmp_path, seeds, wire):
    for seed in seeds:
        outcome = run.search(wire, seed, seconds=300, folder=tmp_path, most=INPUTS, lake_each=INPUTS + 1)
        assert outcome.inputs == INPUTS
        found = [([number for number, _ in one.inputs], one.what) for one in outcome.findings]
        assert found == [], f"python tests/fuzz/run.py {wire} --seed {seed} --number … gives each input"


def test_a_lake_of_damaged_streams_can_be_checked_and_reported(tmp_path, seeds):
    """New ones of every wire, and all that were found."""
    wires = [(wire, run.seeds(wire)) for wire in BY_NAME]
    made = [run.made(known, wire, seeds[1], number) for wire, known in wires for number in range(IN_THE_LAKE)]
    inputs = dict(enumerate([*FOUND.values(), *made]))
    assert [one.what for one in oracle.search_lake(tmp_path, inputs)] == [], f"seed {seeds[1]}"


@pytest.mark.long
def test_every_report_of_a_lake_of_damaged_streams(tmp_path):
    oracle.check_lake(tmp_path, dict(enumerate(FOUND.values())), is_thorough=True)


@pytest.mark.parametrize("redact", [True, False], ids=["redacted", "as it is"])
@pytest.mark.parametrize("name", [*FOUND, "all of them at once"])
def test_what_was_found_stays_fixed(tmp_path, name, redact):
    inputs = {n: data for n, (one, data) in enumerate(FOUND.items()) if name in (one, "all of them at once")}
    wire = next((wire for wire in BY_NAME if name.startswith(wire)), None)
    for seed in range(3 if len(inputs) == 1 else 8):
        for named in {None, wire}:
            oracle.Batch(tmp_path, inputs, named).check(seed, redact=redact)


def test_the_oracle_sees_what_is_wrong(tmp_path):
    """A worker that drops a row, and one that shifts a refusal, are noticed."""
    data = FOUND["claude-code-a-refused-line-between-rows.jsonl"]
    batch = oracle.Batch(tmp_path, {0: data}, None)
    batch.paths[0].write_bytes(data)
    made = oracle.read(tmp_path, batch.tasks(), None, redact=False)
    oracle.check_bytes(made, {0: data}, redact=False)
    whole = dict(made.tables)
    made.tables["event"] = whole["event"].slice(1)
    with pytest.raises(oracle.Broken, match="the ledger counts otherwise: event_lines, events"):
        oracle.check_bytes(made, {0: data}, redact=False)
    made.tables = whole
    with pytest.raises(oracle.Broken, match="do not stand where"):
        oracle.check_bytes(made, {0: b" " + data[:-1]}, redact=False)
