"""The pages in a real browser: drawn without a network, sorted and filtered, inert whatever the streams say."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from helpers import Lab
from hostile import write_hostile

from analytics import open_lake
from analytics.cli import run
from analytics.export import Options, write
from analytics.html.sections import OTHER_ROWS, SECTIONS
from analytics.html.tables import TEXT_CHARS
from analytics.render import shown_columns, visible
from analytics.rows import rows_of

PARTS = [part for section in SECTIONS for part in section.parts]
OPEN_ALL = "for (const folded of document.querySelectorAll('details')) folded.open = true"
CELLS = """
const place = document.querySelector(`[data-table="${arguments[0]}"]`);
const more = place.querySelector('.more-rows');
while (!more.hidden) more.click();
return [...place.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))
"""


def made(lake, out, *arguments):
    assert run([*arguments, "--html", str(out), "--lake", str(lake)]) == 0
    return out


@pytest.fixture(scope="module")
def page(sample_lake, tmp_path_factory):
    return made(sample_lake.path, tmp_path_factory.mktemp("page") / "report.html", "report")


@pytest.fixture
def fresh(browser, page):
    """The page as it opens; the test may change it."""
    browser.open(page)
    return browser


@pytest.fixture
def opened(browser, page):
    """The page with everything unfolded, for tests that only look."""
    if not browser.is_at(page):
        browser.open(page)
        browser.js(OPEN_ALL)
        browser.keep(page)
    return browser


def test_nothing_is_asked_for_and_nothing_goes_wrong(fresh, page):
    assert fresh.console() == []
    assert fresh.requests() == [page.as_uri()]
    assert not fresh.has_dialog()


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


def test_a_narrow_screen_scrolls_only_down(browser, page):
    browser.open(page, width=390)
    assert browser.js("return document.documentElement.scrollWidth") == 390
    assert browser.console() == []


BESIDE = """
const wrong = [], width = document.documentElement.clientWidth;
const meets = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
for (const one of document.querySelectorAll('header *, main *, nav *')) {
    const box = one.getBoundingClientRect();
    if (!one.closest('.scroll, svg') && box.width && (box.left < -1 || box.right > width + 1)) {
        wrong.push(['outside the page', one.tagName, one.textContent.slice(0, 40)]);
    }
}
for (const svg of document.querySelectorAll('.chart svg')) {
    const room = svg.getBoundingClientRect(), report = svg.closest('[data-chart]').dataset.report;
    const texts = [...svg.querySelectorAll('text')]
        .filter((text) => text.textContent && text.getAttribute('opacity') !== '0')
        .map((text) => [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width);
    texts.forEach(([said, box], place) => {
        if (box.left < room.left - 1 || box.right > room.right + 1 || box.top < room.top - 1
            || box.bottom > room.bottom + 1) wrong.push(['cut', report, said]);
        for (const [other, its] of texts.slice(place + 1)) {
            if (meets(box, its)) wrong.push(['overlap', report, said, other]);
        }
    });
}
return wrong.slice(0, 20)
"""


@pytest.mark.parametrize("width", [1366, 800, 400])
@pytest.mark.parametrize("kind", ["page", "hostile"])
def test_nothing_overlaps_and_nothing_is_cut(browser, request, kind, width):
    browser.open(request.getfixturevalue(kind), width=width)
    assert browser.js(BESIDE) == []


def test_what_is_wider_than_the_page_shows_that_there_is_more(browser, page):
    browser.open(page, width=400)
    shades = (
        "return getComputedStyle(document.querySelector('.scroll')).backgroundImage.split('linear-gradient').length - 1"
    )
    assert browser.js(shades) == 4
    assert browser.js("const one = document.querySelector('.scroll'); return one.scrollWidth > one.clientWidth")


def test_percentiles_stand_out_from_the_bars(opened):
    """The lines are drawn over the bars, on a ground of the page's colour."""
    lines = opened.js("""const rules = '[data-report="run_durations"] .role-mark.mark-rule';
        const stroke = (group) => getComputedStyle(group.children[0]).stroke;
        return [...document.querySelectorAll(rules)].map((group) => [group.children.length, stroke(group)])""")
    style = "getComputedStyle(document.body)"
    assert lines == [[4, opened.js(f"return {style}.backgroundColor")], [4, opened.js(f"return {style}.color")]]


@pytest.mark.long
def test_ten_thousand_runs_of_all_wires(browser, tmp_path):
    """Seeded streams of every wire, some lines damaged: a small page, the figures of the reports, room for all."""
    script = [sys.executable, str(ROOT / "benchmarks" / "corpora.py"), str(tmp_path / "corpus")]
    subprocess.run(
        [*script, "--megabytes", "150", "--files", "10000", "--bad", "0.003"], check=True, capture_output=True
    )
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(tmp_path / "corpus")
    assert lake.sql("SELECT count(*), count(DISTINCT wire) FROM runs").fetchall() == [(10_000, 7)]
    page = made(lake.path, tmp_path / "report.html", "report")
    assert page.stat().st_size < 8_000_000
    test_the_data_is_what_the_report_says_as_json(page, lake)
    for width in (1366, 400):
        browser.open(page, width=width)
        assert browser.js(BESIDE) == []
        assert browser.js("return document.documentElement.scrollWidth") == width
    browser.open(page)
    for report in ("overview", "tokens_by_day", "denials_by_tool", "slow_tools", "limit_windows", "refusals"):
        test_a_table_shows_what_the_report_says(browser, lake, report)
    assert browser.requests() == [page.as_uri()]
    assert browser.console() == []
    assert browser.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("report", ["overview", "denials", "tokens", "runs", "slow_tools", "limit_windows", "refusals"])
def test_a_table_shows_what_the_report_says(opened, sample_lake, report):
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


def test_the_data_is_what_the_report_says_as_json(page, sample_lake):
    tables = data_of(page)["tables"]
    assert {part.report for part in PARTS} <= tables.keys()
    for part, table in tables.items():
        to = io.BytesIO()
        write(sample_lake.report(part), Options("json"), to)
        rows = json.loads(to.getvalue())
        names = [column["n"] for column in table["c"]]
        assert table["n"] == len(rows) >= len(table["r"]) >= min(len(rows), OTHER_ROWS)
        for said, row in zip(table["r"], rows, strict=False):
            assert dict(zip(names, said, strict=True)) == {key: as_held(value) for key, value in row.items()}


def as_held(value):
    """A page holds lists as text, and of a long text the beginning."""
    if isinstance(value, list):
        value = ", ".join(value)
    if isinstance(value, str):
        text = visible(value)
        return text if len(text) <= TEXT_CHARS else text[:TEXT_CHARS] + "…"
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value  # threads add up in any order


def data_of(page):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(found)


SORTED = """
const place = document.querySelector('[data-table="denials_by_tool"]'), at = arguments[0];
place.querySelectorAll('th button')[at].click();
return [[...place.querySelectorAll('tbody tr')].map((row) => row.children[at].textContent),
    place.querySelectorAll('th')[at].getAttribute('aria-sort')]
"""


def test_columns_sort_by_value_with_the_unknown_last(fresh):
    down, said = fresh.js(SORTED, 1)
    figures = [int(text.removeprefix("≥ ")) for text in down]
    assert (figures, said) == (sorted(figures, reverse=True), "descending")
    up, said = fresh.js(SORTED, 1)
    assert (up[0].removeprefix("≥ "), said) == ("1", "ascending")
    names, said = fresh.js(SORTED, 0)
    known = [name for name in names if name != "–"]
    assert (known, said) == (sorted(known), "ascending")
    assert "–" not in names[: len(known)]


FILTERED = """
const place = document.querySelector('[data-table="runs"]'), search = place.querySelector('input');
search.value = arguments[0]; search.dispatchEvent(new Event('input'));
const rows = [...place.querySelectorAll('tbody tr')].map((row) => row.textContent);
return [rows, place.querySelector('.bar span').textContent]
"""


def test_the_filter_keeps_rows_with_all_words(fresh):
    rows, said = fresh.js(FILTERED, "METAHARNESS truncated")
    assert rows
    assert all("metaharness" in row and "truncated" in row for row in rows)
    assert f"of {len(rows)} found" in said
    assert fresh.js(FILTERED, "no such words anywhere")[0] == []
    assert fresh.js(FILTERED, "")[0]


def test_a_run_id_leads_to_its_timeline(fresh, page, sample_lake):
    run_id = fresh.js("return document.querySelector('[data-table=\"runs\"] tbody a').textContent")
    fresh.js("document.querySelector('[data-table=\"runs\"] tbody a').click()")
    fresh.wait("return document.querySelector('dialog[open] .steps') !== null")
    assert fresh.js("return document.querySelector('dialog h2').textContent") == run_id
    steps = fresh.js("return document.querySelectorAll('dialog .step').length")
    assert steps == sum(len(step) > 3 for step in data_of(page)["runs"][run_id]["steps"]) > 0
    fresh.js("document.querySelector('.close').click()")
    fresh.wait("return location.hash === ''")


def test_a_run_without_a_timeline_says_the_command(fresh, sample_lake):
    button = fresh.js("const b = document.querySelector('button.run'); if (b) b.click(); return b && b.textContent")
    assert button is not None
    said = fresh.js("return document.querySelector('dialog[open] pre').textContent")
    assert said == f"runlake show '{button}' --lake '{sample_lake.path}' --html run.html"
    fresh.js("document.querySelector('.close').click()")


def test_every_figure_has_its_sql(opened):
    without = opened.js("""return [...document.querySelectorAll('[data-chart], [data-table]')].filter(
        (place) => !/SELECT/.test(place.closest('article').querySelector('details.sql pre').textContent)).length""")
    assert without == 0


def test_dark_and_print_have_their_own_colours(fresh):
    script = """return [getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector('.role-axis-label text')).fill]"""
    seen = []
    for media, scheme in (("", "light"), ("", "dark"), ("print", "dark")):
        fresh.look(media, scheme)
        seen.append(tuple(fresh.js(script)))
    light, dark, paper = seen
    assert light != dark
    assert (light[0], paper[0]) == ("rgb(255, 255, 255)", "rgb(255, 255, 255)")
    assert dark[1] not in (light[1], paper[1])
    assert fresh.pdf().startswith(b"%PDF")
    assert fresh.console() == []


ODD_NAMES = """-- <b>Odd</b> names & titles
-- picture: bar a.b[0] image; column title datum['x'] signal
SELECT tool AS "a.b[0]", count(*) AS "image", tool AS "title", count(*) AS "datum['x']", '{{1+1}}' AS "signal"
FROM tool_calls GROUP BY tool ORDER BY "image" DESC, tool
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("hostile"))
    write_hostile(lab)
    own = lab.folder / "own"
    own.mkdir()
    (own / "odd_names.sql").write_text(ODD_NAMES)
    return made(lab.path, lab.folder / "hostile.html", "report", "--reports", str(own))


PLANTED = """return document.querySelectorAll(
    'img, iframe, object, embed, svg svg, main script, form:not(.vega-bindings)').length"""


def test_hostile_text_is_shown_and_does_nothing(browser, hostile):
    browser.open(hostile)
    browser.js(OPEN_ALL)
    browser.wait("return document.querySelectorAll('.other [data-table] tbody').length > 5")
    assert browser.js(PLANTED) == 0
    assert browser.requests() == [hostile.as_uri()]
    assert browser.console() == []
    assert not browser.has_dialog()
    cells = browser.js(CELLS, "denials_by_tool")
    assert {"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--"} <= {row[0] for row in cells}
    assert browser.js("return document.querySelectorAll('#report-odd_names .mark-rect path').length") > 20
    labels = browser.js("return [...document.querySelectorAll('.chart text')].map((text) => text.textContent)")
    assert any("<" in text for text in labels)


def test_hostile_text_does_nothing_in_tooltips_and_timelines(browser, hostile):
    from selenium.webdriver import ActionChains

    browser.open(hostile)
    bars = browser.driver.find_elements("css selector", '[data-report="denials_by_tool"] .mark-rect path')
    assert bars
    said = []
    for bar in bars[5:9]:
        browser.js("arguments[0].scrollIntoView({block: 'center'})", bar)
        ActionChains(browser.driver).move_to_element(bar).perform()
        browser.wait("return document.querySelector('#vg-tooltip-element.visible') !== null")
        said.append(browser.js("return document.getElementById('vg-tooltip-element').textContent"))
        assert (
            browser.js("return document.querySelectorAll('#vg-tooltip-element :not(table, tbody, tr, td)').length") == 0
        )
    assert any("<" in text for text in said)
    for run_id in list(data_of(hostile)["runs"])[:12]:
        browser.js("location.hash = '#run=' + encodeURIComponent(arguments[0])", run_id)
        browser.wait("return document.querySelector('dialog[open] .end') !== null")
        assert browser.js(PLANTED) == 0
    assert not browser.has_dialog()
    assert browser.requests() == [hostile.as_uri()]
    assert browser.console() == []


def test_a_page_of_one_run(browser, sample_lake, tmp_path):
    ((run_id,),) = sample_lake.sql(
        "SELECT run_id FROM run_metrics WHERE completeness = 'truncated' ORDER BY events DESC, run_id LIMIT 1"
    ).fetchall()
    page = made(sample_lake.path, tmp_path / "run.html", "show", run_id)
    browser.open(page)
    assert browser.console() == []
    assert browser.requests() == [page.as_uri()]
    assert browser.js("return document.querySelector('h1').textContent") == run_id
    assert browser.js("return document.querySelector('.end.truncated').textContent").startswith("cut here (")
    kinds = browser.js("return [...document.querySelectorAll('.step .kind')].map((kind) => kind.textContent)")
    told = [step[1] for step in data_of(page)["runs"][run_id]["steps"] if len(step) > 3]
    assert kinds == told


def test_a_lake_without_limits_says_what_is_not_known(browser, tmp_path):
    from helpers import RECORDED

    lab = Lab(tmp_path)
    lab.write("recorded.jsonl", RECORDED.read_bytes())
    lab.ingest()
    page = made(lab.path, tmp_path / "report.html", "report")
    browser.open(page)
    assert browser.console() == []
    said = browser.js("return document.querySelector('#limits .nothing').textContent")
    assert said.startswith("No rate limit was seen")
    assert browser.js("return document.querySelectorAll('#limits [data-chart]').length") == 0
