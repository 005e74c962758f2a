"""The pages in a real browser: drawn without a network, sorted and filtered, inert whatever the streams say."""

from __future__ import annotations

import json
import re

import pytest
from browser import browser  # noqa: F401 (a fixture)
from helpers import Lab
from hostile import write_hostile

from analytics import open_lake
from analytics.cli import run
from analytics.export import sink
from analytics.html.sections import SECTIONS
from analytics.render import shown_columns
from analytics.rows import rows_of

PARTS = [part for section in SECTIONS for part in section.parts]
OPEN_ALL = "for (const folded of document.querySelectorAll('details')) folded.open = true"
CELLS = """
const place = document.querySelector(`[data-table="${arguments[0]}"]`);
const more = place.querySelector('.more-rows');
while (!more.hidden) more.click();
return [...place.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))
"""


def write(lake, out, *arguments):
    assert run([*arguments, "--html", str(out), "--lake", str(lake)]) == 0
    return out


@pytest.fixture(scope="module")
def page(sample_lake, tmp_path_factory):
    return write(sample_lake.path, tmp_path_factory.mktemp("page") / "report.html", "report")


@pytest.fixture(scope="module")
def opened(browser, page):  # noqa: F811
    browser.open(page)
    return browser


def test_nothing_is_asked_for_and_nothing_goes_wrong(opened, page):
    assert opened.console() == []
    assert opened.requests() == [page.as_uri()]
    assert not opened.has_dialog()


def test_every_picture_is_drawn_with_its_marks(opened):
    charts = opened.js("""return [...document.querySelectorAll('[data-chart]')].map((place) => {
        const svg = place.querySelector('svg'), box = svg.getBoundingClientRect();
        const marks = svg.querySelectorAll('.role-mark path, .role-mark line').length;
        return [place.dataset.report, Number(place.dataset.marks), marks, box.width, box.height, place.clientWidth];
    })""")
    assert {"tokens", "cache_share", "run_costs", "run_durations", "denials_by_tool", "limit_windows"} <= {
        chart[0] for chart in charts
    }
    for report, rows, marks, width, height, room in charts:
        assert marks >= rows > 0, report
        assert room * 0.9 < width <= room + 1, report
        assert height > 40, report


def test_charts_keep_inside_their_figures(browser, page):  # noqa: F811
    for width in (390, 1366):
        browser.open(page, width=width)
        assert browser.js("return document.documentElement.scrollWidth") == width
        assert browser.console() == []


def as_a_terminal_would(value):
    """Percentages are shown to one place on a page."""
    return re.sub(r"^([\d,.]+) %$", lambda hit: hit[1], value)


@pytest.mark.parametrize("report", ["overview", "denials", "tokens", "runs", "slow_tools", "limit_windows", "refusals"])
def test_a_table_shows_what_the_report_says(opened, sample_lake, report):
    opened.js(OPEN_ALL)
    shown = opened.js(CELLS, report)
    rows = rows_of(sample_lake.report(report))
    columns = shown_columns(rows.fields)
    wanted = [[column.cell(row) for column in columns] for batch in rows.batches for row in zip(*batch, strict=True)]
    percent = [n for n, column in enumerate(columns) if column.name.endswith("percent")]
    for row, told in zip(wanted, shown, strict=True):
        for n in percent:
            assert told.pop(n) == (row[n] if row[n] == "–" else f"{float(row[n].replace(',', '')):,.1f} %")
            row.pop(n)
            break
        assert told == row


@pytest.mark.parametrize("part", [part.report for part in PARTS])
def test_the_data_is_what_report_says_as_json(page, sample_lake, part, capfd):
    name, by = (
        (part.rsplit("_by_", 1) + [None])[:2]
        if part in ("denials_by_tool", "denials_by_reason", "unfinished_by_tool")
        else (part, None)
    )
    given = ["report", name, *(["--by", by] if by else []), "--lake", str(sample_lake.path), "--format", "json"]
    assert run(given) == 0
    rows = json.loads(capfd.readouterr().out)
    table = data_of(page)["tables"][part]
    names = [column["n"] for column in table["c"]]
    assert table["n"] == len(rows) == len(table["r"])
    for said, row in zip(table["r"], rows, strict=True):
        assert dict(zip(names, said, strict=True)) == {
            key: ", ".join(value) if isinstance(value, list) else value for key, value in row.items()
        }


def data_of(page):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(found)


SORTED = """
const place = document.querySelector('[data-table="denials_by_tool"]'), at = arguments[0];
place.querySelectorAll('th button')[at].click();
return [[...place.querySelectorAll('tbody tr')].map((row) => row.children[at].textContent),
    place.querySelectorAll('th')[at].getAttribute('aria-sort')]
"""


def test_columns_sort_by_value_with_the_unknown_last(opened):
    down, said = opened.js(SORTED, 1)
    figures = [int(text.removeprefix("≥ ")) for text in down]
    assert (figures, said) == (sorted(figures, reverse=True), "descending")
    up, said = opened.js(SORTED, 1)
    assert ([int(text.removeprefix("≥ ")) for text in up][0], said) == (1, "ascending")
    names, said = opened.js(SORTED, 0)
    known = [name for name in names if name != "–"]
    assert (known, said) == (sorted(known), "ascending")
    assert "–" not in names[: len(known)]


FILTERED = """
const place = document.querySelector('[data-table="runs"]'), search = place.querySelector('input');
search.value = arguments[0]; search.dispatchEvent(new Event('input'));
const rows = [...place.querySelectorAll('tbody tr')].map((row) => row.textContent);
return [rows, place.querySelector('.bar span').textContent]
"""


def test_the_filter_keeps_rows_with_all_words(opened):
    rows, said = opened.js(FILTERED, "METAHARNESS truncated")
    assert rows
    assert all("metaharness" in row and "truncated" in row for row in rows)
    assert f"of {len(rows)} found" in said
    assert opened.js(FILTERED, "no such words anywhere")[0] == []
    assert opened.js(FILTERED, "")[0]


def test_a_run_id_leads_to_its_timeline(opened, page, sample_lake):
    run_id = opened.js("return document.querySelector('[data-table=\"runs\"] tbody a').textContent")
    opened.js("document.querySelector('[data-table=\"runs\"] tbody a').click()")
    opened.wait("return document.querySelector('dialog[open] .steps') !== null")
    assert opened.js("return document.querySelector('dialog h2').textContent") == run_id
    steps = opened.js("return document.querySelectorAll('dialog .step').length")
    assert steps == sum(len(step) > 3 for step in data_of(page)["runs"][run_id]["steps"]) > 0
    opened.js("document.querySelector('.close').click()")
    opened.wait("return location.hash === ''")


def test_a_run_without_a_timeline_says_the_command(opened, sample_lake):
    button = opened.js("const b = document.querySelector('button.run'); if (b) b.click(); return b && b.textContent")
    assert button is not None
    said = opened.js("return document.querySelector('dialog[open] pre').textContent")
    assert said == f"runlake show '{button}' --lake '{sample_lake.path}' --html run.html"
    opened.js("document.querySelector('.close').click()")


def test_every_figure_has_its_sql(opened):
    without = opened.js("""return [...document.querySelectorAll('[data-chart], [data-table]')].filter(
        (place) => !/SELECT/.test(place.closest('article').querySelector('details.sql pre').textContent)).length""")
    assert without == 0


def test_dark_and_print_have_their_own_colours(browser, page):  # noqa: F811
    script = """return [getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector('.role-axis-label text')).fill]"""
    seen = []
    for look in ({}, {"dark": True}, {"dark": True, "media": "print"}):
        browser.open(page, **look)
        seen.append(tuple(browser.js(script)))
        assert browser.console() == []
    light, dark, paper = seen
    assert light != dark
    assert (light[0], paper[0]) == ("rgb(255, 255, 255)", "rgb(255, 255, 255)")
    assert dark[1] not in (light[1], paper[1])
    assert browser.pdf().startswith(b"%PDF")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("hostile"))
    write_hostile(lab)
    return lab


PLANTED = "return document.querySelectorAll('img, iframe, object, embed, svg svg, main script, form').length"


def test_hostile_text_is_shown_and_does_nothing(browser, hostile, tmp_path):  # noqa: F811
    page = write(hostile.path, tmp_path / "hostile.html", "report")
    browser.open(page)
    browser.js(OPEN_ALL)
    browser.wait("return document.querySelectorAll('.other [data-table] tbody').length > 5")
    assert browser.js(PLANTED) == 0
    assert browser.requests() == [page.as_uri()]
    assert browser.console() == []
    assert not browser.has_dialog()
    cells = browser.js(CELLS, "denials_by_tool")
    assert {"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--"} <= {row[0] for row in cells}
    labels = browser.js("return [...document.querySelectorAll('.chart text')].map((text) => text.textContent)")
    assert any("<" in text for text in labels)


def test_hostile_text_does_nothing_in_tooltips_and_timelines(browser, hostile, tmp_path):  # noqa: F811
    from selenium.webdriver import ActionChains

    page = write(hostile.path, tmp_path / "hostile.html", "report")
    browser.open(page)
    bars = browser.driver.find_elements("css selector", '[data-report="denials_by_tool"] .mark-rect path')
    assert bars
    said = []
    for bar in bars[:8]:
        browser.js("arguments[0].scrollIntoView({block: 'center'})", bar)
        ActionChains(browser.driver).move_to_element(bar).perform()
        browser.wait("return document.querySelector('#vg-tooltip-element.visible') !== null")
        said.append(browser.js("return document.getElementById('vg-tooltip-element').textContent"))
        assert (
            browser.js("return document.querySelectorAll('#vg-tooltip-element :not(table, tbody, tr, td)').length") == 0
        )
    assert any("<" in text for text in said)
    for run_id in data_of(page)["runs"]:
        browser.js("location.hash = '#run=' + encodeURIComponent(arguments[0])", run_id)
        browser.wait("return document.querySelector('dialog[open] .end') !== null")
        assert browser.js(PLANTED) == 0
    assert not browser.has_dialog()
    assert browser.requests() == [page.as_uri()]
    assert browser.console() == []


def test_a_page_of_one_run(browser, sample_lake, tmp_path):  # noqa: F811
    ((run_id,),) = sample_lake.sql(
        "SELECT run_id FROM run_metrics WHERE completeness = 'truncated' ORDER BY events DESC, run_id LIMIT 1"
    ).fetchall()
    page = write(sample_lake.path, tmp_path / "run.html", "show", run_id)
    browser.open(page)
    assert browser.console() == []
    assert browser.requests() == [page.as_uri()]
    assert browser.js("return document.querySelector('h1').textContent") == run_id
    assert browser.js("return document.querySelector('.end.truncated').textContent").startswith("cut here (")
    kinds = browser.js("return [...document.querySelectorAll('.step .kind')].map((kind) => kind.textContent)")
    told = [step[1] for step in data_of(page)["runs"][run_id]["steps"] if len(step) > 3]
    assert kinds == told


def test_a_lake_without_limits_says_what_is_not_known(browser, tmp_path):  # noqa: F811
    from helpers import RECORDED

    lab = Lab(tmp_path)
    lab.write("recorded.jsonl", RECORDED.read_bytes())
    lab.ingest()
    page = write(lab.path, tmp_path / "report.html", "report")
    browser.open(page)
    assert browser.console() == []
    said = browser.js("return document.querySelector('#limits .nothing').textContent")
    assert said.startswith("No rate limit was seen")
    assert browser.js("return document.querySelectorAll('#limits [data-chart]').length") == 0


def test_the_lake_is_left_alone(page, sample_lake):
    with open_lake(sample_lake.path) as lake:
        assert lake.version == sample_lake.version
    assert page.stat().st_size < 3_000_000
    with pytest.raises(Exception, match="inside the lake"), sink(sample_lake.path / "x.html"):
        pass
