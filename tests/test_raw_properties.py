"""Back again: whatever went into a lake comes out of it byte for byte, and `check` finds nothing, on every wire."""

from __future__ import annotations

import io
import os
import shutil

import pytest
from helpers import Lab
from hypothesis import HealthCheck, given, settings, strategies as st
from raw_material import DOCUMENTS, STREAMS, contents, sources

from analytics import open_lake
from analytics.errors import RunlakeError
from analytics.wires import BY_NAME

EXAMPLES = int(os.environ.get("RUNLAKE_EXAMPLES", "4"))  # of several sources each
quick = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("raw")


def fresh(folder) -> Lab:
    shutil.rmtree(folder)
    return Lab(folder)


def exported(lake, name):
    to = io.BytesIO()
    made = lake.write_raw(str(name), to)
    assert made.octets == len(to.getvalue())
    return to.getvalue(), made


CONSERVATION = ("lines_of_sources", "bytes_of_sources", "rows_of_sources", "pieces_of_runs", "unique_events")


def found_wrong(lake):
    """What those checks find that lines and bytes could fail."""
    return {name: rows for name in CONSERVATION if (rows := lake.sql(f"FROM check_{name}").fetchall())}


def statuses(lake):
    return dict(lake.sql("SELECT path, status FROM sources").fetchall())


@quick
@given(st.lists(sources(), min_size=3, max_size=6))
def test_what_went_in_comes_out(folder, made):
    lab = fresh(folder)
    paths = [lab.write(f"{number}.{one.suffix}", one.stored) for number, one in enumerate(made)]
    lab.ingest(redact=False, jobs=1)
    with open_lake(lab.path) as lake:
        said = statuses(lake)
        for path, one in zip(paths, made, strict=True):
            if said.get(str(path)) == "skipped":
                with pytest.raises(RunlakeError, match="none of its bytes are in the lake"):
                    exported(lake, path)
                continue
            data, told = exported(lake, path)
            assert data == one.content
            assert told.is_complete
            assert told.redactions == 0
        assert found_wrong(lake) == {}


@quick
@given(st.lists(sources(secrets=True), min_size=3, max_size=6))
def test_only_secrets_differ_and_each_is_counted(folder, made):
    lab = fresh(folder)
    paths = [lab.write(f"{number}.{one.suffix}", one.stored) for number, one in enumerate(made)]
    lab.ingest(jobs=1)
    with open_lake(lab.path) as lake:
        said = statuses(lake)
        for path, one in zip(paths, made, strict=True):
            if said.get(str(path)) != "skipped":
                data, told = exported(lake, path)
                assert data == one.redacted
                assert told.is_complete
                assert told.redactions == one.secrets
        assert found_wrong(lake) == {}


@quick
@given(st.lists(st.tuples(contents(), st.lists(st.floats(0, 1), max_size=2)), min_size=2, max_size=5), contents())
def test_what_grew_or_was_rewritten_comes_out(folder, made, other):
    lab = fresh(folder)
    rounds = max(len(cuts) for _, cuts in made) + 1
    for turn in range(rounds + 1):
        now = {}
        for number, ((data, _, _), cuts) in enumerate(made):
            end = int(sorted(cuts)[turn] * len(data)) if turn < len(cuts) else len(data)
            is_rewritten = turn == rounds and number == 0
            now[number] = other[0] if is_rewritten else data[:end]
        paths = {number: lab.write(f"{number}.jsonl", data) for number, data in now.items()}
        lab.ingest(redact=False, jobs=1)
        with open_lake(lab.path) as lake:
            said = statuses(lake)
            for number, data in now.items():
                if said.get(str(paths[number])) not in ("skipped", None):
                    assert exported(lake, paths[number])[0] == data
            assert turn < rounds or found_wrong(lake) == {}


def test_the_material_is_of_every_wire_and_passes(folder):
    """So that the properties above speak of all wires and shapes."""
    lab = fresh(folder)
    for name, files in STREAMS.items():
        for number, data in enumerate(files):
            lab.write(f"{name} {number}.jsonl", data)
    for number, data in enumerate(DOCUMENTS):
        lab.write(f"document {number}.json", data)
    lab.ingest(redact=False, jobs=1)
    read = {(wire, shape) for wire, shape in lab.sql("SELECT wire, shape FROM sources WHERE status = 'read'")}
    wanted = {(wire.name, shape) for wire in BY_NAME.values() for shape in wire.shapes}
    assert wanted - read == set()
    assert lab.sql("SELECT count(*) FROM sources WHERE status = 'skipped'") == [(0,)]
    with open_lake(lab.path) as lake:
        assert found_wrong(lake) == {}
