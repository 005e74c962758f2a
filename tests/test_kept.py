"""What queries build on is kept over a lake of few events; the answers are those of a lake of which nothing is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from queries_lake import Lake

from analytics import kept
from analytics.relations import INLINED, closure, relations
from analytics.sqlrun import Filters

SPECS = json.loads((Path(__file__).parent / "fixtures" / "queries" / "lake.json").read_text(encoding="utf-8"))
MANY = {"nothing": kept.FEW_EVENTS + 1, "facts": kept.HANDFUL_EVENTS + 1, "all": 0}
# each of these stands on many others; tests/test_queries.py asks all of them of a lake of which all is kept
ASKED = ("report_overview", "report_token_usage_by_task", "coverage", "transcript", "refusals", "events")
FILTERS = {"none": {}, "run": {"run": "q#2"}}


@pytest.fixture(scope="module")
def lakes(tmp_path_factory):
    return {keep: Lake(tmp_path_factory.mktemp(keep), SPECS, rows=rows) for keep, rows in MANY.items()}


def test_how_much_is_kept_goes_by_the_events(lakes):
    assert {keep: lake.session._keep for keep, lake in lakes.items()} == {keep: keep for keep in MANY}


@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("name", ASKED)
def test_the_rows_are_the_same_whatever_is_kept(lakes, name, filters):
    made = {}
    for keep, lake in lakes.items():
        rows = lake.rows(f"FROM {name}", **filters)
        found = lake.session.relation(f"FROM {name}", Filters(**filters))
        types = [str(type_) for type_ in found.types]
        made[keep] = (found.columns, types, sorted(map(repr, rows)))
    assert made["facts"] == made["nothing"]
    assert made["all"] == made["nothing"]


def tables(session):
    return {name for (name,) in session._root.execute("SELECT table_name FROM duckdb_tables()").fetchall()}


def test_only_what_a_query_builds_on_is_kept(tmp_path):
    session = Lake(tmp_path, SPECS).session
    session.relation("SELECT count(*) AS runs FROM decisions").fetchall()
    assert tables(session) == closure({"decisions"}).keys() - {"decisions"}
    assert "run_metrics" not in tables(session)


def test_the_events_of_many_are_not_copied(tmp_path):
    session = Lake(tmp_path, SPECS, rows=MANY["facts"]).session
    session.relation("FROM report_overview").fetchall()
    assert "run_counts" in tables(session)
    assert not tables(session) & set(INLINED)


def test_nothing_is_computed_over_a_large_lake_before_it_is_fetched(tmp_path):
    session = Lake(tmp_path, SPECS, rows=MANY["nothing"]).session
    relation = session.relation("FROM report_overview")
    assert tables(session) == set()
    assert relation.fetchall()
    assert tables(session) == set()


def test_what_filters_leave_is_seen_by_no_other_query(tmp_path):
    session = Lake(tmp_path, SPECS).session
    few = session.relation("SELECT run_id FROM runs", Filters(wire="platonic-core"))
    every = session.relation("SELECT run_id FROM runs")
    fewer = session.relation("SELECT run_id FROM runs", Filters(run="q#2"))
    stream = every.iter_rows()
    first = next(stream)
    assert fewer.fetchall() == [("q#2",)]
    assert {run for (run,) in few.fetchall()} == {"p", "q", "q#2"}
    assert {run for (run,) in [first, *stream]} > {"p", "q", "q#2"}


def test_a_name_of_the_users_own_comes_first(tmp_path):
    lake = Lake(tmp_path, SPECS)
    assert lake.rows("WITH runs AS (SELECT 1 AS n) FROM runs") == [{"n": 1}]
    assert lake.rows("WITH usage AS (SELECT 1 AS n) SELECT n, count(*) AS runs FROM usage, RUN_METRICS GROUP BY n")
    assert set(relations()) >= {"runs", "usage", "run_metrics"}
