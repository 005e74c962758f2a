"""The gate before Spark: every view passes it, and what would change its meaning there is refused by line and name."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed (runlake[spark])")

from analytics import open_lake
from analytics.engines.spark.portable import NotPortable
from analytics.engines.spark.translate import translate
from analytics.engines.spark.types import relation_types
from analytics.relations import relations


@pytest.fixture(scope="module")
def types(tmp_path_factory):
    """The types of every relation of a new lake, and of one more with a column of each kind."""
    lake = open_lake(tmp_path_factory.mktemp("gate") / "lake", create=True)
    kinds = {
        "whole": "BIGINT", "share": "DOUBLE", "money": "DECIMAL(18,10)", "count": "DECIMAL(9,0)", "said": "VARCHAR",
        "at": "TIMESTAMP WITH TIME ZONE", "k": "BIGINT",
    }  # fmt: skip
    return {**relation_types(lake.store), "t": kinds}


@pytest.mark.parametrize("name", [name for name, relation in relations().items() if relation.query is not None])
def test_every_view_is_in_the_portable_subset(name, types):
    assert translate(name, relations()[name].query, types)


def test_every_relation_of_the_lake_is_a_view():
    assert [name for name, relation in relations().items() if relation.query is None] == []


# what Spark would answer otherwise, or not at all: the query, the line of the construct, what the refusal must name
REFUSED = [
    ("SELECT\n  CAST(share AS BIGINT) AS n\nFROM t", 2, "CAST of DOUBLE to BIGINT"),
    ("SELECT CAST(money AS INTEGER) AS n FROM t", 1, "CAST of DECIMAL to INT"),
    ("SELECT\n\n  CAST(at AS VARCHAR) AS n\nFROM t", 3, "to text"),
    ("SELECT CAST(x.inner_share AS INTEGER) FROM (SELECT share * 2 AS inner_share FROM t) AS x", 1, "CAST of DOUBLE"),
    ("SELECT TRY_CAST(said AS BIGINT) AS n FROM t", 1, "TRY_CAST to BIGINT"),
    ("SELECT TRY_CAST(said AS TIMESTAMP) AS n FROM t", 1, "TRY_CAST to TIMESTAMP"),
    ("SELECT whole FROM t\nUNION ALL BY NAME\nSELECT whole FROM t", None, "BY NAME"),
    ("SELECT list(said ORDER BY k) FILTER (WHERE said IS NOT NULL) FROM t", 1, "list(x ORDER BY y)"),
    ("SELECT list(said ORDER BY said DESC) FILTER (WHERE said IS NOT NULL) FROM t", 1, "list(x ORDER BY y)"),
    ("SELECT list(said ORDER BY said) FROM t", 1, "without FILTER"),
    ("SELECT date_diff('hour', at, at) FROM t", 1, "DATE_DIFF"),
    ("SELECT epoch_ms(at) FROM t", 1, "EPOCH_MS"),
    ("SELECT epoch(at) FROM t", 1, "EPOCH"),
    ("SELECT strftime(at, '%d') FROM t", 1, "STRFTIME"),
    ("SELECT regexp_matches(said, 'a') FROM t", 1, "REGEXP"),
    ("SELECT length(list(said ORDER BY said) FILTER (WHERE said IS NOT NULL)) FROM t", 1, "LENGTH of a list"),
    ("SELECT hash(said) FROM t", 1, "hash"),
    ("SELECT approx_quantile(share, 0.5) FROM t", 1, "APPROX_QUANTILE"),
    ("SELECT random() FROM t", 1, "RANDOM"),
]


@pytest.mark.parametrize(("query", "line", "construct"), REFUSED)
def test_what_would_change_its_meaning_is_refused(query, line, construct, types):
    with pytest.raises(NotPortable) as refused:
        translate("made_up", query, types)
    said = str(refused.value)
    assert construct.lower() in said.lower()
    if line is not None:
        assert f"made_up, line {line}: " in said


def test_the_line_is_that_of_the_file(types):
    with pytest.raises(NotPortable, match=r"made_up, line 12: "):
        translate("made_up", "SELECT hash(said) FROM t", types, first_line=12)


# and what both mean alike passes: the words Spark gets
PASSED = [
    ("SELECT CAST(count AS INTEGER) AS n FROM t", "CAST("),
    ("SELECT epoch_us(at) AS n FROM t", "UNIX_MICROS("),
    ("SELECT list(said ORDER BY said) FILTER (WHERE said IS NOT NULL) AS n FROM t", "SORT_ARRAY("),
    ("SELECT arg_max(said, k) AS n FROM t", "MAX_BY("),
    ("SELECT count(*) FILTER (WHERE k > 1) OVER (PARTITION BY said) AS n FROM t", "CASE WHEN"),
    ("SELECT whole FROM t ANTI JOIN sources AS s ON s.path = t.said", "ANTI JOIN"),
    ("SELECT whole FROM t WHERE getvariable('only_run') IS NULL", "IS NULL"),
    ("FROM t SELECT whole ORDER BY k", "NULLS LAST"),
]


@pytest.mark.parametrize(("query", "words"), PASSED)
def test_what_both_mean_alike_passes(query, words, types):
    assert words in translate("made_up", query, types)[-1].sql.upper()


def test_a_filter_becomes_text_that_cannot_break_out(types):
    query = "SELECT whole FROM t WHERE said = getvariable('only_run')"
    (made,) = translate("q", query, types, {"only_run": "it's' OR 1=1 --"})
    assert made.sql.count("'") - 2 * made.sql.count("\\'") + made.sql.count("\\'") == 2


def test_what_is_mentioned_twice_stands_apart(types):
    query = "WITH a AS (SELECT whole FROM t), b AS (FROM a) SELECT x.whole FROM b AS x JOIN a ON a.whole = x.whole"
    first, second, last = translate("q", query, types)
    assert (first.name, first.is_kept, second.name, second.is_kept, last.name) == ("q__a", True, "q__b", False, None)
    assert "q__a AS a" in last.sql
