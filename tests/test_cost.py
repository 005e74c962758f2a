"""What runs cost: sums worked out by hand, price lists, and what has no price.

Rates of genai-prices that the arithmetic below uses, in US dollars per million tokens (they are history and stay):
    claude-haiku-4-5   input 1     read 0.1   written 5m 1.25  1h 2   output 5
    claude-sonnet-4-5  input 3     read 0.3   written 5m 3.75  1h 6   output 15;  above 200,000: 6, 0.6, 7.5, 12, 22.5
    claude-opus-4-6    input 5, output 25 since 2026-03-13; before, above 200,000: 10 and 37.5
    gpt-5.2            input 1.75  read 0.175                        output 14
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from decimal import Decimal

import native_make as make
import pytest
from conftest import ROOT
from hypothesis import given, settings, strategies as st

from analytics import open_lake
from analytics.bundledprices import BundledPrices
from analytics.cli import run
from analytics.cost import GROUPINGS, price_list
from analytics.errors import RunlakeError, UsageError
from analytics.pricefile import COLUMNS, read_price_file
from analytics.pricing import PARTS, REASONS, Amount, Price, Rates, Usage, amount_of

HEAD = ",".join(COLUMNS)


def since_start(text):
    """Seconds from the clock of native_make to a time."""
    return (datetime.fromisoformat(text) - make.START).total_seconds()


def asked(name, when, figures, *, model):
    """A session of one question and one answer; the answer comes at `when`."""
    session = make.Session(name, start=since_start(when) - 1)
    return session.user().answer(f"msg_{name}", figures, model=model, request=f"req_{name}")


FILES = {
    "haiku": asked("haiku", "2026-05-04T12:00:00Z", make.usage(1000, 500, read=20_000, write=3000, hour=1000),
                   model=make.HAIKU),
    "before": asked("before", "2026-03-12T23:59:59Z", make.usage(250_000, 1000), model=make.OPUS),
    "after": asked("after", "2026-03-13T00:00:00Z", make.usage(250_000, 1000), model=make.OPUS),
    "small": asked("small", "2026-05-04T12:00:00Z", make.usage(200_000, 1000), model=make.SONNET),
    "large": asked("large", "2026-05-04T12:00:00Z", make.usage(100_000, 1000, read=100_001), model=make.SONNET),
    "unknown": asked("unknown", "2026-05-04T12:00:00Z", make.usage(700, 300), model="nobody-1"),
    "fast": asked("fast", "2026-05-04T12:00:00Z", make.usage(700, 300, speed="fast"), model=make.HAIKU),
    "silent": make.Session("silent").user(),
    "codex": make.Rollout("codex").turn("t").spend(10_000, 8000, 600, 400).done("t"),
    "printed": make.Exec("printed").turn().say("i").done(500, 0, 20),
    "capture": make.Capture("capture", model=make.HAIKU).init()
    .answer("msg_capture", make.usage(1000, 1, read=5000, write=4000))
    .ended(make.usage(1000, 200, read=5000, write=4000),
           {make.HAIKU: make.model_usage(1000, 200, read=5000, write=4000, cost=0.25)}, cost=0.25),
}  # fmt: skip

# the sums in millionths of a dollar, by what each token costs
BY_HAND = {
    # 1,000 × 1 + 20,000 × 0.1 + 2,000 × 1.25 (5 minutes) + 1,000 × 2 (1 hour) + 500 × 5
    "haiku": 1000 + 2000 + 2500 + 2000 + 2500,
    # the last second before the price changed, above 200,000: 250,000 × 10 + 1,000 × 37.5
    "before": 2_500_000 + 37_500,
    # the first second after: 250,000 × 5 + 1,000 × 25
    "after": 1_250_000 + 25_000,
    # exactly 200,000 is not above it: 200,000 × 3 + 1,000 × 15
    "small": 600_000 + 15_000,
    # 200,001 with what was cached is above it: 100,000 × 6 + 100,001 × 0.6 + 1,000 × 22.5
    "large": Decimal(600_000) + Decimal("60000.6") + 22_500,
    # input 10,000, of which 8,000 were cached; output 600, of which 400 were reasoning:
    # 2,000 × 1.75 + 8,000 × 0.175 + 600 × 14
    "codex": 3500 + 1400 + 8400,
}
TOKENS = {"haiku": 24_500, "before": 251_000, "after": 251_000, "small": 201_000, "large": 201_001, "codex": 10_600}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("cost")
    (made / "in").mkdir()
    for name, file in FILES.items():
        (made / "in" / f"{name}.jsonl").write_bytes(file.data)
    lake = open_lake(made / "lake", create=True)
    assert lake.ingest(made / "in").refusals_by_reason == {}
    return made


@pytest.fixture(scope="module")
def lake(folder):
    return open_lake(folder / "lake")


@pytest.fixture
def cli(folder, capfd, monkeypatch):
    monkeypatch.setenv("RUNLAKE_LAKE", str(folder / "lake"))

    def go(*arguments):
        capfd.readouterr()
        code = run(["cost", *map(str, arguments)])
        said = capfd.readouterr()
        return code, said.out, said.err

    return go


def listed(tmp_path, *lines, head=HEAD):
    file = tmp_path / "prices.csv"
    file.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return file


def by_run(lake, **options):
    rows = lake.cost("run", **options).pl().to_dicts()
    return {row["run_id"].rsplit("/", 1)[-1]: row for row in rows}


# sums by hand


@pytest.mark.parametrize("name", BY_HAND)
def test_a_run_costs_what_was_worked_out_by_hand(lake, name):
    row = by_run(lake)[name]
    assert row["priced_cost_usd"] * 1_000_000 == BY_HAND[name]
    assert row["tokens_seen"] == row["tokens_priced"] == TOKENS[name]
    assert (row["runs"], row["runs_priced"], row["priced_share"], row["unpriced_reasons"]) == (1, 1, 1.0, [])
    assert row["vendor_cost_usd"] is None


def test_what_was_written_for_5_minutes_and_for_1_hour_stands_apart(lake):
    row = by_run(lake)["haiku"]
    millionths = {name: row[f"{name}_cost_usd"] * 1_000_000 for name in PARTS}
    assert millionths == {
        "uncached_input": 1000, "cache_read": 2000, "cache_write_5m": 2500, "cache_write_1h": 2000,
        "cache_write_unknown": 0, "output": 2500,
    }  # fmt: skip


def test_all_runs_come_to_the_sum_of_the_runs_and_what_lacks_a_price_makes_it_a_lower_bound(lake):
    (row,) = lake.cost("all").pl().to_dicts()
    assert row["priced_cost_usd"] * 1_000_000 == sum(BY_HAND.values())
    assert row["priced_cost_usd_is_lower_bound"]
    # of 11 runs six have a price; 700 + 300 (unknown), 700 + 300 (fast), 500 + 20 (printed), 10,000 + 200 (capture)
    assert (row["runs"], row["runs_priced"]) == (11, 6)
    assert row["tokens_priced"] == sum(TOKENS.values())
    assert row["tokens_seen"] == sum(TOKENS.values()) + 1000 + 1000 + 520 + 10_200
    assert row["priced_share"] == row["tokens_priced"] / row["tokens_seen"]


def test_what_has_no_price_has_a_reason_and_no_amount(lake):
    rows = by_run(lake)
    reasons = {name: row["unpriced_reasons"] for name, row in rows.items() if row["unpriced_reasons"]}
    assert reasons == {
        "unknown": ["unknown_model"], "fast": ["no_speed_price"], "silent": ["no_usage"], "printed": ["no_model"],
        "capture": ["no_date"],
    }  # fmt: skip
    for name in reasons:
        assert rows[name]["priced_cost_usd"] is None
        assert all(rows[name][f"{part}_cost_usd"] is None for part in PARTS)
        assert rows[name]["runs_priced"] == 0
    assert rows["silent"]["tokens_seen"] is None
    assert rows["silent"]["priced_share"] is None
    assert rows["unknown"]["priced_share"] == 0.0


def test_the_vendors_cost_stands_beside_ours_and_is_in_no_sum_of_it(lake, tmp_path):
    # written it is not known for how long: at the lower rate, 1,000 × 1 + 5,000 × 0.1 + 4,000 × 1.25 + 200 × 5
    row = by_run(lake, prices=listed(tmp_path, "claude-haiku-*,,,1,0.1,1.25,2,5"))["capture"]
    assert row["priced_cost_usd"] * 1_000_000 == 1000 + 500 + 5000 + 1000
    assert row["cache_write_unknown_cost_usd"] * 1_000_000 == 5000
    assert row["priced_cost_usd_is_lower_bound"]
    assert row["vendor_cost_usd"] == Decimal("0.25")
    assert not row["vendor_cost_usd_is_lower_bound"]
    (whole,) = lake.cost("all").pl().to_dicts()
    assert whole["vendor_cost_usd"] == Decimal("0.25")
    assert whole["vendor_cost_usd_is_lower_bound"]
    assert whole["runs_with_vendor_cost"] == 1


def test_a_total_above_a_step_does_not_say_how_large_its_requests_were():
    usage = Usage(make.SONNET, None, datetime(2026, 5, 4, tzinfo=UTC), False, 200_000, 300_000, 300_000, 0, 0, 0, 0, 10)
    amount = amount_of(usage, BundledPrices())
    assert (amount.uncached, amount.output, amount.is_lower_bound) == (Decimal("0.9"), Decimal("0.00015"), True)
    below = Usage(make.SONNET, None, datetime(2026, 5, 4, tzinfo=UTC), False, 0, 200_000, 200_000, 0, 0, 0, 0, 10)
    assert not amount_of(below, BundledPrices()).is_lower_bound


def test_a_codex_turn_that_harness_lab_records_is_no_request(sample_lake):
    query = (
        "SELECT DISTINCT adapter, is_request FROM usage_to_price WHERE wire = 'harness-lab' AND is_request IS NOT NULL"
    )
    rows = sample_lake.sql(f"{query} AND usage_source = 'delta' ORDER BY ALL").fetchall()
    assert rows == [("codex", False), ("generic", True)]


def test_fractions_of_a_cent_add_up_before_they_are_rounded(lake, tmp_path):
    # 1,000 tokens of "unknown" at 0.0000000005 a million come to half of the last place kept, and so do 1,000 more:
    # rounded one by one (half to even) they would be nothing
    prices = listed(tmp_path, "nobody-1,,,0.0000000005,,,,0.0000000005", "claude-haiku-*,,,0,0,0,0,0")
    assert by_run(lake, prices=prices)["unknown"]["priced_cost_usd"] == 0
    one = Usage("nobody-1", None, None, True, 0, 1000, 1000, 0, 0, 0, 0, 0)
    amount = amount_of(one, read_price_file(prices))
    assert amount.uncached == Decimal("0.0000000000005")
    prices = listed(tmp_path, "nobody-1,,,0.0000000005,,,,0.0000000015")
    # 700 × 0.0000000005 + 300 × 0.0000000015 = 0.8 of the last place: 1 when rounded once, 0 when rounded part by part
    row = by_run(lake, prices=prices)["unknown"]
    assert (row["priced_cost_usd"], row["uncached_input_cost_usd"]) == (Decimal("0.000000000001"), Decimal(0))


# against the library, and against our other reports


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from([make.HAIKU, make.SONNET, make.OPUS, make.GPT, "o3", "gpt-5.4", "deepseek-chat"]),
    day=st.sampled_from(["2025-06-09", "2025-06-10", "2026-03-12", "2026-03-13", "2026-10-01"]),
    hour=st.integers(0, 23),
    parts=st.lists(st.integers(0, 300_000), min_size=5, max_size=5),
)
def test_the_library_comes_to_the_same(model, day, hour, parts):
    import genai_prices

    at = datetime.fromisoformat(f"{day}T{hour:02d}:45:00+00:00")
    uncached, read, five, one_hour, output = parts
    prices = BundledPrices()
    if not model.startswith("claude"):
        five = one_hour = 0
    whole = uncached + read + five + one_hour
    above = max((start for start in prices.steps_of(model) if whole > start), default=0)
    amount = amount_of(
        Usage(model, None, at, True, above, whole, uncached, read, five, one_hour, 0, output),
        prices,
    )
    theirs = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=whole, cache_read_tokens=read, cache_write_tokens=five + one_hour,
            cache_write_1h_tokens=one_hour, output_tokens=output,
        ),
        model, genai_request_timestamp=at,
    )  # fmt: skip
    assert sum(amount.parts) == theirs.total_price
    assert not amount.is_lower_bound


@pytest.mark.parametrize("by", [name for name in GROUPINGS if name != "run"])
def test_every_grouping_of_the_sample_comes_to_the_same_sums(sample_lake, by):
    prices = ROOT / "data" / "prices.csv"
    ours, vendors, seen, priced = sums(sample_lake.cost(by, prices=prices).pl().to_dicts())
    assert (ours, vendors, seen, priced) == sums(sample_lake.cost("all", prices=prices).pl().to_dicts())
    assert ours > 1
    ((overview,),) = sample_lake.sql("SELECT cost_usd FROM report_overview WHERE wire = 'all'").fetchall()
    assert float(vendors) == pytest.approx(overview, abs=1e-9)


def sums(rows):
    return tuple(
        sum(row[name] or 0 for row in rows)
        for name in ("priced_cost_usd", "vendor_cost_usd", "tokens_seen", "tokens_priced")
    )


def test_a_run_that_another_one_shows_is_listed_and_in_no_sum(sample_lake, tmp_path):
    prices = listed(tmp_path, "*,,,1,1,1,1,1")
    rows = sample_lake.cost("run", prices=prices).pl().to_dicts()
    assert len(rows) == sample_lake.sql("SELECT count(*) FROM runs").fetchall()[0][0]
    counted = [row for row in rows if row["is_counted"]]
    assert len(counted) < len(rows)
    assert sums(counted) == sums(sample_lake.cost("all", prices=prices).pl().to_dicts())


def test_side_calls_stand_beside_the_tokens_of_their_run_and_are_paid(sample_lake, tmp_path):
    prices = listed(tmp_path, "alder-helper-1,,,1,1,1,1,1")
    rows = {row["model"]: row for row in sample_lake.cost("model", prices=prices).pl().to_dicts()}
    assert rows["alder-helper-1"]["is_side_call"]
    # each token costs a millionth of a dollar
    assert rows["alder-helper-1"]["priced_cost_usd"] * 1_000_000 == rows["alder-helper-1"]["tokens_seen"] > 0
    helped = sample_lake.sql("SELECT DISTINCT run_id FROM usage WHERE is_side_call AND is_counted").fetchall()
    rows = {row["run_id"]: row for row in sample_lake.cost("run", prices=prices).pl().to_dicts()}
    assert all(rows[name]["priced_cost_usd"] > 0 for (name,) in helped)


def test_a_lower_bound_of_tokens_is_one_of_the_cost(sample_lake, tmp_path):
    rows = sample_lake.cost("run", prices=listed(tmp_path, "*,,,1,1,1,1,1")).pl().to_dicts()
    unsure = {name for (name,) in sample_lake.sql("SELECT run_id FROM usage WHERE is_lower_bound").fetchall()}
    priced = [row for row in rows if row["priced_cost_usd"] is not None and not row["unpriced_reasons"]]
    assert {row["run_id"] for row in priced if row["priced_cost_usd_is_lower_bound"]} == {
        row["run_id"] for row in priced if row["run_id"] in unsure
    }


# price lists


def test_the_first_line_that_fits_the_model_and_the_day_gives_the_price(tmp_path):
    prices = read_price_file(listed(
        tmp_path, "a-1,2026-01-01,2026-01-31,1,,,,1", "a-?,2026-01-31,2026-02-01,2,,,,2", "b*,,,3,,,,3",
    ))  # fmt: skip

    def rate(model, day):
        found = prices.price(model, None, None if day is None else datetime.fromisoformat(f"{day}T23:59:59+00:00"))
        return found.steps[0][1].input if isinstance(found, Price) else found

    assert [rate("a-1", day) for day in ("2025-12-31", "2026-01-01", "2026-01-31", "2026-02-01", "2026-02-02")] == [
        "no_price_then", 1, 1, 2, "no_price_then",
    ]  # fmt: skip
    assert rate("a-2", "2026-01-31") == 2
    assert rate("b-anything", None) == 3  # a price without dates needs none
    assert rate("a-1", None) == "no_date"
    assert rate("A-1", "2026-01-01") == "unknown_model"


def test_a_line_stands_before_the_bundled_price_and_only_where_it_holds(lake, tmp_path):
    prices = listed(tmp_path, "claude-opus-4-6,2026-03-13,,1,1,1,1,1")
    rows = by_run(lake, prices=prices)
    assert rows["after"]["priced_cost_usd"] * 1_000_000 == 251_000
    assert rows["after"]["priced_as"] == ["prices.csv line 2"]
    assert rows["before"]["priced_cost_usd"] * 1_000_000 == BY_HAND["before"]
    assert rows["before"]["priced_as"] == ["anthropic/claude-opus-4-6"]


def test_an_empty_price_is_none_and_not_zero(lake, tmp_path):
    rows = by_run(lake, prices=listed(tmp_path, "claude-haiku*,2026-01-01,,1,,,,1", "gpt*,2026-01-01,,1,,,,1"))
    assert rows["haiku"]["unpriced_reasons"] == ["no_cached_price"]
    assert rows["codex"]["unpriced_reasons"] == ["no_cached_price"]
    rows = by_run(lake, prices=listed(tmp_path, "claude-haiku*,2026-01-01,,1,1,1,,1"))
    assert rows["haiku"]["unpriced_reasons"] == ["no_1h_price"]
    rows = by_run(lake, prices=listed(tmp_path, "claude-haiku*,2026-01-01,,1,1,,1,1"))
    assert rows["haiku"]["unpriced_reasons"] == ["no_cache_write_price"]


@pytest.mark.parametrize(("rates", "outcome"), [
    (("1", "0.1", None, None), "no_token_split"),
    (("1", None, None, None), 100),
    (("1", "1", "1", "1"), 100),
])  # fmt: skip
def test_input_whose_cached_part_is_not_known_has_a_price_where_that_makes_no_difference(rates, outcome):
    class Fixed:
        name = "fixed"

        def price(self, model, speed, at):
            given = [None if rate is None else Decimal(rate) for rate in rates]
            return Price("fixed", ((0, Rates(*given, Decimal(1))),))

    found = amount_of(Usage("m", None, None, True, 0, 90, None, 0, 0, 0, 0, 10), Fixed())
    assert (sum(found.parts) * 1_000_000 if isinstance(found, Amount) else found) == outcome


@pytest.mark.parametrize(("lines", "words"), [
    (["a,,,1,,,,x"], "line 2: output_usd_per_mtok 'x' is no price. Write US dollars per million tokens, such as 6.25."),
    (["a,,,1,,,,1", "b,,,-1,,,,1"], "line 3: input_usd_per_mtok '-1' is no price."),
    (["a,,,nan,,,,1"], "line 2: input_usd_per_mtok 'nan' is no price."),
    (["a,,,1e3,,,,1"], "line 2: input_usd_per_mtok '1e3' is no price."),
    (["a,,,,,,,1"], "line 2: input_usd_per_mtok is empty. A price needs it."),
    (["a,2026-02-30,,1,,,,1"], "line 2: valid_from '2026-02-30' is no date. Write it as 2026-01-31."),
    (["a,2026-02-02,2026-02-01,1,,,,1"], "line 2: valid_until 2026-02-01 is before valid_from 2026-02-02."),
    ([",,,1,,,,1"], "line 2: model is empty. Write a name, or * for all models."),
    (["", "a,,,1,,1"], "line 3: 6 cells, where the first line has 8."),
    ([], "has no prices."),
    (['a,,,1,,,,"1'], "is not CSV: line 2"),
    (["a,,,x,,,,1", "a,,,1,y,,,1"], "line 3: cached_input_usd_per_mtok 'y'"),
    (["a,,,1,,,,1", "b,,,1,,,,1", "a,,,2,,,,2"], "line 4: 'a' has a price on all days already, in line 2. Keep one."),
    (["a,2026-01-01,2026-01-31,1,,,,1", "a,2026-01-31,,2,,,,2"],
     "line 3: 'a' has a price on 2026-01-31 already, in line 2. Keep one."),
    (["a,,2026-01-31,1,,,,1", "a,,2026-01-30,2,,,,2"], "line 3: 'a' has a price on 2026-01-30 already, in line 2."),
])  # fmt: skip
def test_what_is_wrong_with_a_price_list_is_said_by_line(tmp_path, lines, words):
    with pytest.raises(UsageError) as told:
        read_price_file(listed(tmp_path, *lines))
    assert words in str(told.value)


@pytest.mark.parametrize(("head", "words"), [
    (HEAD.replace("input_usd_per_mtok", "inptu_usd_per_mtok", 1),
     "line 1: there is no column 'inptu_usd_per_mtok'. Did you mean 'input_usd_per_mtok'?"),
    (HEAD.replace(",valid_until", ""), "line 1: valid_until is missing."),
    (HEAD + ",model", "line 1: the column 'model' stands twice."),
])  # fmt: skip
def test_a_wrong_first_line_is_said(tmp_path, head, words):
    with pytest.raises(UsageError) as told:
        read_price_file(listed(tmp_path, head=head))
    assert words in str(told.value)


def test_a_price_list_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(RunlakeError, match="no such file"):
        read_price_file(tmp_path / "none.csv")
    (tmp_path / "prices.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_price_file(tmp_path / "prices.csv")


def test_without_the_extra_the_error_names_it_and_a_list_of_ones_own_still_serves(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(UsageError, match=r"pip install 'runlake\[cost\]'"):
        price_list()
    assert price_list(listed(tmp_path, "a,,,1,,,,1")).name == "prices.csv"


def test_models_not_paid_by_the_token_have_no_price():
    prices, at = BundledPrices(), datetime(2026, 10, 1, tzinfo=UTC)
    for model in ("whisper-1", "tts-1", "text-embedding-3-small", "perplexity/sonar"):
        assert prices.price(model, None, at) in ("no_token_price", "unknown_model"), model


def test_a_recorded_speed_has_the_price_of_that_speed():
    prices, at = BundledPrices(), datetime(2026, 10, 1, tzinfo=UTC)
    standard, fast = (prices.price("claude-opus-4-6", speed, at) for speed in ("standard", "fast"))
    if isinstance(fast, Price):  # not in each version of the price list
        assert fast.steps[0][1].input > standard.steps[0][1].input
        assert fast.name == "anthropic/claude-opus-4-6 (fast)"
    else:
        assert fast == "no_speed_price"


# the command


def test_the_command_prints_rows_and_says_what_they_cover(cli):
    code, out, err = cli()
    assert code == 0
    assert " $3.8125" in out  # claude-opus-4-6: 2.5375 + 1.275
    assert "≥ $0.0100" in out  # claude-haiku-4-5, of which some has no price
    assert "6 of 11 runs wholly (genai-prices " in err
    assert "unpriced: no_date, no_model, no_speed_price, no_usage, unknown_model" in err
    assert "By the vendors' own records ≥ $0.2500, in 1 of 11 runs." in err


def test_data_formats_hold_exact_money_and_null(cli, tmp_path):
    code, out, _ = cli("--by", "run", "--where", "run_id LIKE '%large'", "--format", "json")
    (row,) = json.loads(out, parse_float=Decimal)
    assert (code, row["priced_cost_usd"], row["vendor_cost_usd"]) == (0, Decimal("0.6825006"), None)
    file = tmp_path / "cost.parquet"
    assert cli("--by", "day", "--by", "model", "-o", file)[0] == 0
    import duckdb

    rows = duckdb.sql(f"SELECT day, model, priced_cost_usd FROM '{file}' WHERE model = '{make.OPUS}' ORDER BY day")
    assert [(str(day), cost) for day, _, cost in rows.fetchall()] == [
        ("2026-03-12", Decimal("2.5375")), ("2026-03-13", Decimal("1.275")),
    ]  # fmt: skip


def test_filters_choose_the_runs(cli):
    code, out, err = cli("--by", "all", "--since", "2026-03-12T23:59:59Z", "--until", "2026-03-13", "--format", "csv")
    assert code == 0
    assert "1.275000000000" in out
    assert "1 of 1 runs wholly" in err


@pytest.mark.parametrize(("arguments", "words"), [
    (("--by", "modle"), "There is no grouping of cost by 'modle'. Did you mean 'model'?"),
    (("--wire", "nosuch"), "There is no wire 'nosuch'."),
    (("--where", "nosuch = 1"), "nosuch"),
    (("--where", "1) UNION (SELECT 1"), "The query failed."),
])  # fmt: skip
def test_what_does_not_exist_is_refused(cli, arguments, words):
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_a_condition_reaches_no_file(cli):
    code, out, _ = cli("--where", f"EXISTS (FROM read_text('{ROOT}/README.md'))")
    assert (code != 0, out) == (True, "")


def test_every_reason_has_words():
    from typing import get_args

    from analytics.pricing import Reason

    assert set(REASONS) == set(get_args(Reason))
