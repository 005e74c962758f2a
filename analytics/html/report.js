"use strict";
// Texts of the data reach the page as text nodes only, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const UNKNOWN = "–", FIRST_ROWS = 12, MORE_ROWS = 200;

  function make(tag, names, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(names || {})) {
      if (name === "on") element.addEventListener("click", value);
      else element.setAttribute(name, value);
    }
    element.append(...inside.filter((part) => part !== null && part !== undefined));
    return element;
  }

  // how values are shown; the terminal's tables follow the same rules

  const grouped = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

  function whole(value) {
    return grouped(String(value));
  }

  function places(value, count) {
    const [head, tail] = Math.abs(value).toFixed(count).split(".");
    return (value < 0 ? "-" : "") + grouped(head) + (tail ? "." + tail : "");
  }

  function fraction(value) {
    if (typeof value === "string") return value;
    if (value !== 0 && Math.abs(value) < 0.0001) return String(Number(value.toPrecision(2)));
    return places(value, 4).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  }

  function dollars(value) {
    if (typeof value === "string") return value;
    const sign = value < 0 ? "-" : "", size = Math.abs(value);
    if (size && size < 0.0001) return sign + "$" + size.toFixed(1 - Math.floor(Math.log10(size)));
    return sign + "$" + places(size, 4);
  }

  function duration(value) {
    if (typeof value === "string") return value;
    if (value < 0) return "-" + duration(-value);
    if (value < 1000) return Math.round(value) + " ms";
    if (value < 59950) return (value / 1000).toFixed(1) + " s";
    const two = (number) => String(number).padStart(2, "0");
    const seconds = Math.round(value / 1000);
    if (seconds < 3600) return Math.floor(seconds / 60) + " m " + two(seconds % 60) + " s";
    const minutes = Math.round(value / 60000);
    if (minutes < 1440) return Math.floor(minutes / 60) + " h " + two(minutes % 60) + " m";
    const hours = Math.round(value / 3600000);
    return Math.floor(hours / 24) + " d " + two(hours % 24) + " h";
  }

  const moment = (text) => text.replace(/^(.{10})T(\d\d:\d\d:\d\d)(\.\d+)?/, "$1 $2");
  const SHOW = {
    integer: whole, ordinal: String, fraction, percent: (value) => (typeof value === "string" ? value : places(value, 1) + " %"), usd: dollars, ms: duration, moment, text: String,
    share: (value) => places(100 * value, 1) + " %", truth: (value) => (value ? "yes" : "no"),
  };
  const NUMBERS = new Set(["integer", "ordinal", "fraction", "percent", "share", "measured", "usd", "ms"]);

  function measured(measure, value) {
    if (measure.endsWith("_usd")) return dollars(value);
    return measure.endsWith("_ms") ? duration(value) : fraction(Number(value.toPrecision(6)));
  }

  function shown(column, row, value) {
    if (value === null) return UNKNOWN;
    const text = column.s === "measured" ? measured(row[column.k], value) : SHOW[column.s](value);
    if (column.f === undefined || row[column.f] !== column.w) return text;
    return column.m === "open" ? text + " open so far" : "≥ " + text;
  }

  // tables

  function compare(column, index) {
    const numeric = NUMBERS.has(column.s);
    return (a, b) => {
      const x = a[index], y = b[index];
      if (x === null || y === null) return (x === null) - (y === null);
      if (numeric) return Number(x) - Number(y);
      return typeof x === "boolean" ? x - y : x < y ? -1 : x > y ? 1 : 0;
    };
  }

  function cell(column, row, value) {
    const text = shown(column, row, value);
    const kind = value === null ? "u" : column.s === "moment" || text.length <= 28 ? "m" : "t";
    const place = make("td", { class: NUMBERS.has(column.s) ? (value === null ? "n u" : "n") : kind });
    place.append(column.r && value !== null ? runLink(value) : text);
    return place;
  }

  function drawTable(place) {
    const table = data.tables[place.dataset.table];
    if (!table || place.childElementCount) return;
    const head = make("tr"), body = make("tbody");
    const state = { rows: table.r, sort: null, down: false, most: FIRST_ROWS, words: "" };
    const count = make("span", { "aria-live": "polite" });
    const more = make("button", { type: "button", class: "more-rows", on: () => { state.most += MORE_ROWS; fill(); } });
    const search = make("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows" });
    const texts = new Map(), widths = [[9, "snug"], [12, "wide"], [18, "very"]];
    const wide = widths.filter(([most]) => table.o.length > most).map(([, name]) => name).join(" ");

    function textOf(row) {
      if (!texts.has(row)) texts.set(row, table.o.map((i) => shown(table.c[i], row, row[i])).join("\n").toLowerCase());
      return texts.get(row);
    }

    function fill() {
      body.replaceChildren(...state.rows.slice(0, state.most).map((row) =>
        make("tr", {}, ...table.o.map((index) => cell(table.c[index], row, row[index])))));
      const left = state.rows.length - Math.min(state.most, state.rows.length);
      more.textContent = "Show " + whole(Math.min(left, MORE_ROWS)) + " more";
      more.hidden = left === 0;
      const all = table.n > table.r.length ? "the first " + whole(table.r.length) + " of " + whole(table.n) : whole(table.n);
      const rows = table.n === 1 ? " row" : " rows";
      count.textContent = state.words || left
        ? whole(Math.min(state.most, state.rows.length)) + (state.words ? " of " + whole(state.rows.length) + " found, in " : " of ") + all + rows
        : all + rows;
    }

    function arrange() {
      const words = state.words.toLowerCase().split(/\s+/).filter(Boolean);
      let rows = words.length ? table.r.filter((row) => words.every((word) => textOf(row).includes(word))) : table.r;
      if (state.sort !== null) {
        const order = compare(table.c[state.sort], state.sort), index = state.sort;
        rows = [...rows].sort((a, b) => {
          const unknown = (a[index] === null) - (b[index] === null);
          return unknown || (state.down ? -order(a, b) : order(a, b));
        });
      }
      state.rows = rows;
      fill();
    }

    for (const index of table.o) {
      const column = table.c[index], numeric = NUMBERS.has(column.s);
      const heading = make("th", { scope: "col", class: numeric ? "n" : "", "aria-sort": "none" });
      heading.append(make("button", { type: "button", title: column.n, on: () => {
        const again = state.sort === index;
        state.down = again ? !state.down : numeric;
        state.sort = index;
        for (const other of head.children) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        arrange();
      } }, column.t));
      head.append(heading);
    }
    search.addEventListener("input", () => { state.words = search.value; state.most = FIRST_ROWS; arrange(); });
    place.append(
      make("div", { class: "bar" }, table.r.length > 5 ? search : null, count, more),
      make("div", { class: "scroll", tabindex: "0" }, make("table", { class: wide }, make("thead", {}, head), body)),
    );
    fill();
  }

  function drawTiles(place) {
    const table = data.tables[place.dataset.tiles], row = table.r[table.r.length - 1];
    place.append(...data.tiles.map(([index, title]) =>
      make("div", { class: "tile" }, make("b", {}, tile(table.c[index], row, row[index])), make("span", {}, title))));
  }

  function tile(column, row, value) {
    if (value !== null && column.s === "usd" && value >= 100) {
      return (row[column.f] === column.w ? "≥ $" : "$") + places(value, 2);
    }
    if (value === null || column.s !== "integer" || Math.abs(value) < 1e6) return shown(column, row, value);
    const [size, unit] = value < 1e9 ? [1e6, " M"] : [1e9, " B"];
    const least = column.f !== undefined && row[column.f] === column.w && column.m === "least";
    return (least ? "≥ " : "") + (Math.floor(value / size * 100) / 100).toFixed(2) + unit;
  }

  // charts

  const options = {
    ast: true, renderer: "svg", actions: false, mode: "vega-lite",
    tooltip: { disableDefaultStyle: true }, defaultStyle: false,
  };

  function fitting(spec, place) {
    const narrow = place.clientWidth < 560;
    if (narrow) {
      spec.config.legend.columns = 2;
      spec.config.axisY.labelLimit = 120;
    }
    return spec;
  }

  async function drawChart(place) {
    if (place.childElementCount || !place.clientWidth) return;
    place.append(make("span"));
    try {
      await vegaEmbed(place, fitting(data.charts[Number(place.dataset.chart)], place), options);
      place.dataset.drawn = "true";
    } catch (error) {
      place.replaceChildren("This picture could not be drawn: " + error.message);
      console.error(error);
    }
  }

  // runs

  const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";

  function runLink(run) {
    if (Object.hasOwn(data.runs, run)) return make("a", { href: "#run=" + encodeURIComponent(run) }, run);
    return make("button", { type: "button", class: "run", title: command(run), on: () => openRun(run) }, run);
  }

  const command = (run) => "runlake show " + quoted(run) + " --lake " + quoted(data.lake) + " --html run.html";

  function step(row) {
    if (row.length <= 3) return make("li", { class: row[0] }, row[1], row.length > 2 ? make("span", {}, row[2]) : null);
    const [at, kind, facts, text, tone] = row;
    return make("li", { class: "step " + kind.replaceAll(".", "-") + (tone ? " " + tone : "") },
      make("span", { class: "at" }, at), make("span", { class: "kind" }, kind),
      make("span", { class: "said" }, facts, text ? make("span", { class: "text" }, text) : null));
  }

  function requestRows(requests) {
    const rows = [];
    requests.forEach(([ms, input, cached, output], place) => {
      const t = ms === null ? UNKNOWN : duration(ms), n = place + 1;
      if (cached !== null) rows.push({ n, o: 0, kind: "from the cache", tokens: cached, t });
      rows.push({ n, o: 1, kind: "other input", tokens: input, t });
      if (output !== null) rows.push({ n, o: 2, kind: "output", tokens: output, t });
    });
    return rows;
  }

  function timeline(run, place) {
    const told = data.runs[run];
    const facts = make("dl", { class: "facts" });
    for (const [name, text] of told.facts) facts.append(make("dt", {}, name), make("dd", {}, text));
    const chart = make("div", { class: "chart" });
    place.append(facts);
    if (told.requests.length > 1) {
      place.append(make("figure", {}, make("figcaption", {}, "Tokens of each request, in order"), chart));
    }
    place.append(make("ol", { class: "steps" }, ...told.steps.map(step)));
    place.append(make("p", { class: "end " + told.completeness }, told.end));
    if (told.requests.length > 1) {
      const spec = structuredClone(data.requests);
      spec.data = { values: requestRows(told.requests) };
      vegaEmbed(chart, spec, options).then(() => { chart.dataset.drawn = "true"; }, (error) => console.error(error));
    }
  }

  const dialog = document.getElementById("run");

  function openRun(run) {
    const inside = make("div", { class: "inside" }, make("h2", {}, run));
    dialog.replaceChildren(make("button", { type: "button", class: "close", on: () => dialog.close() }, "Close"), inside);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    if (Object.hasOwn(data.runs, run)) timeline(run, inside);
    else inside.append(
      make("p", { class: "nothing" }, "This file holds the timelines of the runs with the most to see; this is none of them. A page of its own:"),
      make("pre", {}, command(run)));
  }

  function followHash() {
    if (!location.hash.startsWith("#run=")) return;
    let run;
    try { run = decodeURIComponent(location.hash.slice(5)); } catch { return; }
    openRun(run);
  }
  dialog.addEventListener("close", () => {
    if (location.hash.startsWith("#run=")) history.replaceState(null, "", location.pathname + location.search);
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  window.addEventListener("hashchange", followHash);

  function draw(root) {
    for (const place of root.querySelectorAll("[data-tiles]")) if (!place.childElementCount) drawTiles(place);
    for (const place of root.querySelectorAll("[data-table]")) {
      const folded = place.closest("details");
      if (!folded || folded.open) drawTable(place);
    }
  }

  async function start() {
    draw(document);
    for (const folded of document.querySelectorAll("details.more, details.other")) {
      folded.addEventListener("toggle", () => { if (folded.open) draw(folded); });
    }
    if (data.only) timeline(data.only, document.getElementById("timeline"));
    else followHash();
    for (const place of document.querySelectorAll("[data-chart]")) await drawChart(place);
    document.documentElement.dataset.ready = "true";
  }
  start();
})();
