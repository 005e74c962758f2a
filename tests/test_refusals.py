"""Every refusal reason is one row of one list: each has a fixture that shows it, and code names no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from conftest import ROOT
from helpers import FIXTURES, Lab, Reader, check_conservation

from analytics import reading
from analytics.refusals import NAMES, REASONS
from analytics.wires import metaharness
from analytics.wires.base import Refusal

FOLDER = FIXTURES / "refusals"
# what a reason needs beside its file: limits a small file is beyond of
SETTINGS = {
    "line_too_long": {"max_line_bytes": 1024},
    "document_too_large": {"max_document_bytes": 64},
    "compression_ratio": {"max_ratio": 10},
}


def fixture_of(reason: str) -> Path:
    """The one file named after the reason."""
    (path,) = (path for path in FOLDER.iterdir() if path.name.split(".")[0] == reason)
    return path


def test_every_fixture_is_named_after_a_reason():
    assert {path.name.split(".")[0] for path in FOLDER.iterdir()} == NAMES


def test_names_are_given_once_and_say_something():
    assert len(REASONS) == len(NAMES)
    for reason in REASONS:
        assert re.fullmatch(r"[a-z0-9_]+", reason.name)
        assert reason.seen.endswith(".")
        assert reason.remedy.endswith(".")


@pytest.mark.parametrize("reason", [reason.name for reason in REASONS])
def test_the_fixture_of_a_reason_is_refused_for_it_and_for_nothing_else(tmp_path, monkeypatch, reason):
    path = fixture_of(reason)
    monkeypatch.setattr(reading.Compressed, "FREE_BYTES", 1 << 16)
    if reason == "read_error":
        fail_behind(monkeypatch, 400)
    record, made = Reader(tmp_path, **SETTINGS.get(reason, {})).read(path)
    assert [refusal["reason"] for refusal in made.refusals] == [reason]
    (refusal,) = made.refusals
    assert record.refusals_by_reason == {reason: 1}
    assert refusal["detail"], "what was seen is told"
    assert refusal["raw_sha256"]
    if refusal["line"] is not None:
        check_conservation(made)
        assert made.events, "the other lines of the file are events"


def fail_behind(monkeypatch, size):
    """The disk fails behind the first bytes of a file."""
    monkeypatch.setattr(reading, "HEAD_BYTES", size)
    real = reading.Plain.readinto
    done = []

    def readinto(self, view):
        if sum(done) >= size:
            raise reading.SourceDefect("Input/output error")
        done.append(real(self, view[: size - sum(done)]))
        return done[-1]

    monkeypatch.setattr(reading.Plain, "readinto", readinto)


# -- the names in the code

MAKERS = frozenset({"Refusal", "Broken", "UnreadableError", "BrokenRowError", "refuse", "refuse_file", "fault"})
NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")


def texts(node: ast.AST) -> set[str]:
    """The literal names an expression can come to."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value} if NAME.fullmatch(node.value) else {"malformed"} & {node.value}
    if isinstance(node, ast.IfExp):
        return texts(node.body) | texts(node.orelse)
    return set()


def reasons_in(tree: ast.AST, *, has_faults: bool) -> set[str]:
    """Names that are given as a reason: to what makes a refusal, to a variable of that name, or first in a fault."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in MAKERS:
                found |= set().union(*(texts(argument) for argument in node.args))
            found |= set().union(*(texts(word.value) for word in node.keywords if word.arg == "reason"))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if getattr(target, "id", "") in ("reason", "problem"):
                    found |= texts(node.value)
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=True)
                    named = [value for one, value in pairs if getattr(one, "id", "") in ("reason", "problem")]
                    found |= set().union(*map(texts, named))
        elif has_faults and isinstance(node, ast.Tuple) and len(node.elts) == 2:  # the replay's (reason, detail)
            found |= texts(node.elts[0])
    return found


def test_code_names_no_reason_that_is_not_in_the_list_and_every_one_that_is():
    """Read from the source, so that a reason which no test provokes is found, too."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "analytics").rglob("*.py"):
        has_faults = path.name in ("platonic_core_rows.py", "platonic_core_state.py")
        for name in reasons_in(ast.parse(path.read_text()), has_faults=has_faults):
            found.setdefault(name, set()).add(path.name)
    # pairs of the replay that are no fault: identifiers and columns
    pairs = {"result.call_id", "call_id", "run_id", "turn_id"}
    assert found.keys() - pairs == NAMES, {name: found.get(name) for name in found.keys() ^ NAMES}


def test_a_reason_that_is_not_in_the_list_stops_the_ingest(tmp_path, monkeypatch):
    monkeypatch.setattr(metaharness.Metaharness, "explain", lambda *_: Refusal("full_moon", "it was"))
    lab = Lab(tmp_path)
    lab.write("a.jsonl", fixture_of("unknown_event").read_bytes())
    with pytest.raises(AssertionError, match="full_moon"):
        lab.ingest()
