"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import CORPUS, ROOT
from handmade import events, make_lake, source

from analytics.api import MAIN_REPORTS, report_list
from analytics.cli import app, run
from analytics.errors import UsageError
from analytics.moments import moment
from analytics.relations import closure, composed

ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("RUNLAKE_LAKE", "COLUMNS", "NO_COLOR")}
ENVIRONMENT |= {"PYTHONPATH": str(ROOT)}
COMMAND = [sys.executable, "-m", "analytics"]


@pytest.fixture
def cli(capfd, monkeypatch, sample_lake):
    """Runs one command over the sample lake in this process: (exit code, stdout, stderr)."""
    monkeypatch.setenv("RUNLAKE_LAKE", str(sample_lake.path))
    monkeypatch.delenv("COLUMNS", raising=False)

    def go(*arguments):
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        said = capfd.readouterr()
        return code, said.out, said.err

    return go


@pytest.fixture
def rows(cli):
    """The rows a command prints as JSON."""

    def go(*arguments):
        code, out, _ = cli(*arguments, "--format", "json")
        assert code == 0
        return json.loads(out)

    return go


def shell(*arguments, cwd, **more):
    environment = ENVIRONMENT | more
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def here(tmp_path, monkeypatch, capfd):
    """Runs one command in `tmp_path`, in this process: as `shell` does, without a start of Python."""
    monkeypatch.chdir(tmp_path)
    for name in ("RUNLAKE_LAKE", "COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def go(*arguments):
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        said = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    return go


# where the lake is


def test_the_lake_is_the_switch_then_the_variable_then_here(tmp_path, monkeypatch, capfd):
    for name in ("switch", "variable", "lake"):
        make_lake(
            tmp_path / name, event=events(name, {"kind": "message"}), source=[source({"run_id": name, "lines": 1})]
        )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUNLAKE_LAKE", raising=False)

    def asked(*arguments):
        assert run([*arguments]) == 0
        return capfd.readouterr().out.splitlines()[1]

    query = ["sql", "SELECT run_id FROM events", "--format", "csv"]
    assert asked(*query) == "lake"
    monkeypatch.setenv("RUNLAKE_LAKE", "variable")
    assert asked(*query) == "variable"
    assert asked(*query, "--lake", "switch") == "switch"
    assert asked("--lake", "switch", *query) == "switch"


def test_no_lake_is_one_sentence_with_the_remedy(cli, tmp_path):
    code, out, err = cli("report", "--lake", tmp_path / "none")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "There is no lake" in err
    assert "runlake ingest" in err


# ingest


def test_ingest_prints_what_it_did_and_the_second_time_nothing_new(tmp_path):
    shutil.copytree(CORPUS / "metaharness", tmp_path / "in")
    (tmp_path / "in" / "other.txt").write_text("no wire\n")
    first = shell("ingest", "in", "--format", "json", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    [done] = json.loads(first.stdout)
    files = sum(path.suffix != ".json" for path in (tmp_path / "in").rglob("*") if path.is_file())
    assert done["files_new"] + done["files_copied"] + done["files_skipped"] == files
    assert done["lines"] > 0
    assert done["refusals"] == sum(done["refusals_by_reason"].values())
    assert "other.txt" in first.stderr
    second = shell("ingest", "in", "--format", "json", cwd=tmp_path)
    [again] = json.loads(second.stdout)
    assert (again["files_new"], again["lines"], again["version"]) == (0, 0, done["version"])
    table = shell("ingest", "in", cwd=tmp_path).stdout
    assert "files unchanged" in table


def test_ingest_takes_stdin_and_a_named_wire(tmp_path):
    stream = next((CORPUS / "metaharness").rglob("*.jsonl"))
    done = subprocess.run(
        [*COMMAND, "ingest", "-", "--wire", "metaharness", "--format", "json"], cwd=tmp_path, env=ENVIRONMENT,
        stdin=stream.open("rb"), capture_output=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)[0]["events"] > 0


def test_strict_makes_a_refusal_a_failure(tmp_path, here):
    good = next(path for path in (CORPUS / "metaharness").rglob("*.jsonl"))
    (tmp_path / "bad.jsonl").write_bytes(good.read_bytes() + b'{"format":"metaharness.event/9"}\n')
    assert here("ingest", "bad.jsonl").returncode == 0
    assert here("ingest", "bad.jsonl", "--lake", "strict", "--strict").returncode == 1
    assert (tmp_path / "strict").exists()


@pytest.mark.parametrize("arguments", [
    ("ingest",), ("ingest", "nothing-there.jsonl"), ("ingest", CORPUS, "--wire", "no-such"),
    ("ingest", CORPUS, "--jobs", "0"),
    ("nosuch",), ("report", "--nosuch"), ("report", "denails"), ("report", "token_usage", "--by", "moon"), ("sql",),
    ("sql", "SELECT 1", "-f", "x.sql"), ("sql", "DROP TABLE x"), ("sql", "SELECT nope FROM runs"), ("sql", "SELECT ("),
    ("report", "runs", "--since", "some day"), ("report", "runs", "--where", "nope = 1"), ("show", "no-such-run"),
    ("report", "runs", "denials", "--format", "csv"), ("export",), ("report", "runs", "--format", "docx"),
    ("schema", "nosuch"), ("report", "runs", "--at", "999"),
])  # fmt: skip
def test_asking_for_what_does_not_exist(cli, arguments):
    code, out, err = cli(*arguments)
    assert code == (1 if "999" in arguments else 2)
    assert out == ""
    assert "Traceback" not in err
    assert err.strip()


def test_an_unknown_report_names_the_nearest(cli):
    assert "Did you mean 'denials'?" in cli("report", "denails")[2]
    assert "Did you mean 'metaharness'?" in cli("ingest", CORPUS, "--wire", "metaharnes")[2]


def test_debug_shows_the_traceback(sample_lake, tmp_path):
    for arguments in (["--debug", "report", "nosuch"], ["report", "nosuch", "--debug"]):
        done = shell(*arguments, "--lake", sample_lake.path, cwd=tmp_path)
        assert done.returncode == 1
        assert "Traceback" in done.stderr
    assert "Traceback" not in shell("report", "nosuch", "--lake", sample_lake.path, cwd=tmp_path).stderr


# reports


def test_reports_lists_what_report_takes(cli, rows):
    listed = rows("reports")
    assert listed == report_list()
    for report in listed:
        assert report["one_row_is"], report
        for by in [None, *report["by"]]:
            arguments = ["report", report["report"], *(["--by", by] if by else []), "--format", "jsonl"]
            assert cli(*arguments)[::2] == (0, ""), arguments


def test_every_relation_answers_in_one_statement(sample_lake):
    """What a relation builds on is found by reading its text: a name missed would send it the slow way, or astray."""
    session = sample_lake._open()
    for name in sample_lake.tables:
        text = composed(f"FROM {name} LIMIT 3", closure({name}))
        assert text is not None
        assert session._cursor(None).sql(text).columns


def test_report_without_a_name_prints_the_main_ones(cli):
    code, out, _ = cli("report")
    assert code == 0
    for title in MAIN_REPORTS:
        assert f"\n{title}\n" in f"\n{out}"


def test_several_reports_in_each_format(cli, tmp_path):
    code, out, _ = cli("report", "denials", "coverage", "--format", "json")
    assert code == 0
    assert set(json.loads(out)) == {"denials", "coverage"}
    assert "## denials" in cli("report", "denials", "coverage", "--format", "md")[1]
    assert cli("report", "denials", "coverage", "--format", "csv", "-o", tmp_path / "out")[0] == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["coverage.csv", "denials.csv"]


def test_filters_choose_runs_and_do_not_stay(rows):
    everything = rows("runs")
    one = everything[0]["run_id"]
    assert [row["run_id"] for row in rows("report", "run_metrics", "--run", one)] == [one]
    assert {row["wire"] for row in rows("runs", "--wire", "platonic-core")} == {"platonic-core"}
    assert all(row["completeness"] == "open" for row in rows("runs", "--where", "completeness = 'open'"))
    days = sorted(row["started_at"] for row in everything if row["started_at"])
    middle = days[len(days) // 2]
    later, earlier = rows("runs", "--since", middle), rows("runs", "--until", middle)
    assert 0 < len(later) < len(everything)
    assert len(later) + len(earlier) == len(days)
    assert rows("runs") == everything


def test_by_takes_the_grouped_report(rows):
    by_day = rows("report", "token_usage", "--by", "day")
    assert by_day == rows("report", "token_usage_by_day")
    assert by_day


def test_an_older_version_can_be_asked(tmp_path, capfd):
    store = make_lake(
        tmp_path / "lake", event=events("r1", {"kind": "message"}), source=[source({"run_id": "r1", "lines": 1})]
    )
    assert store.version == 1
    assert (
        run(["sql", "SELECT count(*) AS n FROM events", "--at", "0", "--lake", str(store.root), "--format", "csv"]) == 0
    )
    assert capfd.readouterr().out == "n\n0\n"


# sql, show, refused, status, check, …


def test_sql_reads_from_an_argument_a_file_or_stdin(cli, tmp_path, sample_lake):
    (tmp_path / "q.sql").write_text("-- how many\nSELECT 42 AS n;\n")
    assert cli("sql", "SELECT 42 AS n", "--format", "csv")[1] == "n\n42\n"
    assert cli("sql", "-f", tmp_path / "q.sql", "--format", "csv")[1] == "n\n42\n"
    done = subprocess.run(
        [*COMMAND, "sql", "-f", "-", "--format", "csv", "--lake", str(sample_lake.path)], env=ENVIRONMENT,
        input="SELECT 42 AS n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "n\n42\n"


def test_a_relation_is_found_wherever_it_is_named(rows):
    for query in ("SELECT '--' AS dashes, count(*) AS n FROM runs", "SELECT count(*) AS n FROM RUNS",
                  'SELECT count(*) AS n FROM "runs"', "FROM main.runs SELECT count(*) AS n",
                  "/* FROM x */ WITH runs AS (FROM runs) SELECT count(*) AS n FROM runs"):  # fmt: skip
        assert rows("sql", query)[0]["n"] > 0, query


@pytest.mark.parametrize(("name", "kind"), [
    ("x.json", b"["), ("x.jsonl", b"{"), ("x.csv", b"n\n"), ("x.md", b"| n |"), ("x.txt", b"n"), ("x.parquet", b"PAR1"),
])  # fmt: skip
def test_the_suffix_of_the_output_file_says_the_format(cli, tmp_path, name, kind):
    code, out, _ = cli("sql", "SELECT 1 AS n", "-o", tmp_path / name)
    assert (code, out) == (0, "")
    assert (tmp_path / name).read_bytes().lstrip().startswith(kind)


def test_a_folder_that_is_missing_is_named(cli, tmp_path):
    code, _, err = cli("sql", "SELECT 1", "-o", tmp_path / "none" / "x.csv")
    assert code == 1
    assert str(tmp_path / "none") in err


def test_show_tells_a_run_from_start_to_end(cli, rows):
    closed = next(row for row in rows("runs") if row["completeness"] == "closed" and row["tool_calls"])
    code, out, _ = cli("show", closed["run_id"])
    assert code == 0
    assert out.splitlines()[0] == f"run      {closed['run_id']}"
    assert "tool.requested" in out or "tool.started" in out
    assert out.splitlines()[-1].startswith("── the run ended here")
    steps = rows("show", closed["run_id"])
    assert {step["run_id"] for step in steps} == {closed["run_id"]}
    assert [step["position"] for step in steps] == sorted(step["position"] for step in steps)


def test_show_says_where_a_run_was_cut(cli, rows):
    cut = next(row for row in rows("runs") if row["completeness"] == "truncated")
    assert cli("show", cut["run_id"])[1].splitlines()[-1].startswith("── cut here")


def test_show_takes_a_beginning_of_an_id_if_it_is_the_only_one(cli, rows):
    ids = [row["run_id"] for row in rows("runs")]
    one = max(ids, key=len)
    assert cli("show", one[:-1])[0] == 0 or any(other != one and other.startswith(one[:-1]) for other in ids)
    code, _, err = cli("show", "")
    assert code == 2
    assert "Several runs begin" in err


def test_refused_has_place_and_reason(rows):
    refused = rows("refused")
    assert refused
    for row in refused:
        assert row["path"]
        assert row["reason"]
        assert row["byte_offset"] is not None or row["line"] is None


def test_status_sees_what_changed_on_disk(tmp_path, here):
    shutil.copytree(CORPUS / "metaharness", tmp_path / "in")
    streams = sorted((tmp_path / "in").rglob("*.jsonl"))
    here("ingest", "in")
    streams[0].unlink()
    with streams[1].open("ab") as file:
        file.write(b"{")
    shutil.copy(streams[2], tmp_path / "in" / "more.jsonl")
    [said] = json.loads(here("status", "in", "--format", "json").stdout)
    assert (said["sources_gone"], said["sources_grown"], said["sources_new"]) == (1, 1, 1)
    assert said["redaction"] == "on"
    each = json.loads(here("status", "in", "--each", "--format", "json").stdout)
    states = {row["path"]: row["state"] for row in each}
    assert states[str(streams[0])] == "gone"
    assert states[str(streams[1])] == "grown"
    assert states[str(tmp_path / "in" / "more.jsonl")] == "new"
    assert "sources gone" in here("status").stdout


def test_check_is_quiet_over_a_sound_lake(cli):
    code, out, err = cli("check")
    assert (code, err) == (0, "")
    assert "ok" in out


def test_check_fails_with_the_source_named(tmp_path, capfd):
    lake = make_lake(
        tmp_path / "lake", event=events("r1", {"kind": "message"}),
        source=[source({"run_id": "r1", "lines": 1}, lines=7, event_lines=1, events=1, refused_lines=0, refusals=0,
                       blank_lines=0, pending_bytes=0)],
    )  # fmt: skip
    assert run(["check", "--lake", str(lake.root)]) == 1
    said = capfd.readouterr()
    assert "failed" in said.out
    assert "lines_of_sources: source /streams/s1.jsonl, lines 7, event_lines 1" in said.err


def test_history_and_compact(tmp_path, here):
    shutil.copytree(CORPUS / "metaharness", tmp_path / "in")
    here("ingest", next((tmp_path / "in").rglob("*.jsonl")))
    here("ingest", "in")
    before = here("sql", "FROM run_metrics ORDER BY run_id", "--format", "json").stdout
    [saved] = json.loads(here("compact", "--format", "json").stdout)
    assert saved["files_after"] < saved["files_before"]
    assert here("sql", "FROM run_metrics ORDER BY run_id", "--format", "json").stdout == before
    versions = json.loads(here("history", "--format", "json").stdout)
    assert [row["version"] for row in versions] == list(range(saved["version"], -1, -1))


def test_export_writes_one_file_per_relation(cli, tmp_path, sample_lake):
    code, out, err = cli("export", "runs", "tool_calls", "-o", tmp_path / "out")
    assert (code, out) == (0, "")
    assert "runs.parquet" in err
    table = pq.read_table(tmp_path / "out" / "runs.parquet")
    assert table.num_rows == sample_lake.sql("SELECT count(*) FROM runs").fetchall()[0][0]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["runs.parquet", "tool_calls.parquet"]


def test_the_python_door_exports_too(sample_lake, tmp_path):
    files = sample_lake.export(tmp_path / "out", "runs", "denials", format="csv", wire="metaharness")
    assert [file.name for file in files] == ["runs.csv", "denials.csv"]
    assert "metaharness" in files[0].read_text()
    assert "platonic-core" not in files[0].read_text()


def test_wires_schema_and_version(cli, rows):
    assert {"metaharness", "harness-lab", "platonic-core"} <= {row["wire"] for row in rows("wires")}
    from analytics.schema import EVENT

    assert [row["column"] for row in rows("schema", "event")] == [column.name for column in EVENT]
    assert all(row["remedy"] for row in rows("schema", "reasons"))
    assert cli("version")[1].startswith("runlake ")


# a good citizen of the shell


def test_every_command_says_what_it_is_for(cli):
    _, out, _ = cli("--help")
    commands = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert len(commands) >= 14
    for command in commands:
        assert f"\n  {command} " in out
        code, text, _ = cli(command, "--help")
        assert code == 0
        assert "Usage: runlake" in text


def test_everything_that_prints_rows_takes_the_same_switches(cli):
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        if name != "version":
            text = cli(name, "--help")[1]
            for switch in ("--format", "--output", "--csv-formulas"):
                assert switch in text, name


def test_a_reader_that_hangs_up_is_no_error(sample_lake):
    query = "SELECT * FROM range(3000000)"
    for format_ in ("csv", "jsonl", "table"):
        command = f"{' '.join(COMMAND)} sql '{query}' --format {format_} --lake {sample_lake.path} | head -1"
        done = subprocess.run(["bash", "-c", command], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        assert done.stdout.count("\n") == 1


def interruptible() -> None:
    """Undo what a worker of pytest-xdist hands on: SIGINT ignored or blocked."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ctrl_c_ends_quietly_with_130(sample_lake):
    query = "SELECT count(*) FROM range(100000000) a, range(100000000) b"
    process = subprocess.Popen(
        [*COMMAND, "sql", query, "--lake", str(sample_lake.path)], env=ENVIRONMENT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, preexec_fn=interruptible,  # noqa: PLW1509
    )  # fmt: skip
    try:
        while cpu_seconds(process.pid) < 2.5:  # start-up takes less than one: the query is running, whatever the load
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert (out, b"Traceback" in err) == (b"", False)


def on_a_terminal(arguments, cwd=None, columns=100, **more):
    """stdout and stderr of a command whose stdout is a terminal."""
    import fcntl
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = ENVIRONMENT | {"TERM": "xterm"} | more
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], cwd=cwd, env=environment, stdout=follower, stderr=subprocess.PIPE
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            block = os.read(leader, 65536)
        except OSError:
            break
        if not block:
            break
        seen += block
    os.close(leader)
    err = process.stderr.read()
    process.wait()
    return process.returncode, seen.decode().replace("\r\n", "\n"), err.decode()


def test_a_terminal_gets_its_width_and_colour(sample_lake):
    from rich.cells import cell_len
    from rich.text import Text

    code, out, err = on_a_terminal(["report", "run_metrics", "--lake", sample_lake.path])
    assert code == 0
    assert "\x1b[1m" in out
    assert max(cell_len(Text.from_ansi(line).plain) for line in out.splitlines()) <= 100
    assert "more columns do not fit" in err
    _, plain, _ = on_a_terminal(["report", "run_metrics", "--lake", sample_lake.path], NO_COLOR="1")
    assert "\x1b" not in plain


def test_parquet_does_not_go_to_a_terminal(sample_lake):
    code, out, err = on_a_terminal(["runs", "--format", "parquet", "--lake", sample_lake.path])
    assert (code, out) == (2, "")
    assert "-o FILE" in err


def test_the_progress_bar_is_on_stderr_and_only_on_a_terminal(tmp_path):
    arguments = ["ingest", CORPUS, "--format", "jsonl"]
    quiet = shell(*arguments, cwd=tmp_path)
    assert "lines/s" not in quiet.stderr
    assert len(quiet.stdout.splitlines()) == 1
    leader, follower = pty.openpty()
    environment = ENVIRONMENT | {"TERM": "xterm", "COLUMNS": "120"}
    command = [*COMMAND, *map(str, arguments), "--lake", "other"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=follower)
    os.close(follower)
    seen = b""
    with suppress(OSError):  # the end of a terminal
        while piece := os.read(leader, 1 << 16):
            seen += piece
    os.close(leader)
    out = process.communicate()[0]
    assert process.returncode == 0
    assert "reading" in seen.decode()
    assert json.loads(out)["files_new"] > 0


def test_help_and_imports_are_light(tmp_path):
    script = "import sys, analytics, analytics.cli; print(sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    for heavy in ("duckdb", "pyarrow", "polars", "deltalake", "numpy"):
        assert f"'{heavy}'" not in done.stdout


# times


@pytest.mark.parametrize(("said", "meant"), [
    ("2026-09-01", datetime(2026, 9, 1, tzinfo=UTC)), ("2026-09-01T12:00:00Z", datetime(2026, 9, 1, 12, tzinfo=UTC)),
    ("2026-09-01T12:00:00", datetime(2026, 9, 1, 12, tzinfo=UTC)),
    ("2026-09-01T14:00+02:00", datetime(2026, 9, 1, 12, tzinfo=UTC)),
    (date(2026, 9, 1), datetime(2026, 9, 1, tzinfo=UTC)),
    (datetime(2026, 9, 1), datetime(2026, 9, 1, tzinfo=UTC)),  # noqa: DTZ001 (the case)
])  # fmt: skip
def test_a_time_is_utc_unless_it_says_otherwise(said, meant):
    assert moment(said) == meant


def test_a_date_as_an_end_means_the_end_of_the_day():
    assert moment("2026-09-01", end=True) == datetime(2026, 9, 2, tzinfo=UTC)
    assert moment("2026-09-01T00:00:00Z", end=True) == datetime(2026, 9, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("age", "length"), [("7d", timedelta(days=7)), ("36h", timedelta(hours=36)), ("2w", timedelta(14))]
)
def test_an_age_counts_back_from_now(age, length):
    assert abs(datetime.now(UTC) - length - moment(age)) < timedelta(seconds=5)


@pytest.mark.parametrize("wrong", ["yesterday", "2026-13-01", "7y", "", "99999999999w", "d"])
def test_what_is_no_time_is_said(wrong):
    with pytest.raises(UsageError, match="is no time"):
        moment(wrong)


def test_the_lake_has_no_path_of_the_checkout(rows):
    assert not [row for row in rows("reports") if str(Path.home()) in json.dumps(row)]


@pytest.mark.parametrize(
    "asked", [("sql", "SELECT '\udcff'"), ("runs", "--where", "wire = '\udcff'"), ("show", "\udcff")]
)
def test_a_query_that_is_no_text_is_a_usage_error(cli, asked):
    code, out, err = cli(*asked)
    assert (code, out) == (2, "")
    assert "not UTF-8 text" in err


def test_without_stderr_rows_come_and_without_stdout_a_sentence(tmp_path):
    shell = [sys.executable, "-m", "analytics", "wires"]
    silent = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *shell], capture_output=True, text=True)
    assert silent.returncode == 0
    assert "metaharness" in silent.stdout
    mute = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *shell], capture_output=True, text=True)
    assert mute.returncode == 1
    assert "stdout is closed" in mute.stderr


def test_a_file_that_was_named_and_cannot_be_read_is_a_failure(cli, tmp_path):
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    code, _, err = cli("ingest", tmp_path / "gone.jsonl", "--lake", tmp_path / "other")
    assert code == 1
    assert "leads nowhere" in err
