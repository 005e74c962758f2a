"""Agents' homes: what is found there, what an ingest without a path offers, and what --agents reads."""

from __future__ import annotations

import json
import os

import pytest

from analytics import open_lake
from analytics.agents import AGENTS, find_homes, looked_in
from analytics.cli import run
from analytics.errors import UsageError
from analytics.lake import Store

CAPTURE = '{"type":"thread.started","thread_id":"%s"}\n{"type":"turn.started"}\n'


class User:
    """A home folder, and the variables of whoever lives there."""

    def __init__(self, folder, capture):
        self.home = folder
        self.capture = capture
        self.environ = {"HOME": str(folder)}

    def leave(self, path, text=None):
        """A file; the rows are an exec capture's, for which wire reads them is not the question here."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if text is not None else CAPTURE % file.stem)
        return file

    def found(self, **options):
        return {home.folder: (home.agent.name, home.files, home.size) for home in find_homes(self.environ, **options)}

    def run(self, *arguments):
        """An ingest as it runs in the home, with the home's variables and no others: (exit code, stdout, stderr)."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.home)
            for name in os.environ.keys() - {"PATH", "PYTHONPATH", "LANG"}:
                patch.delenv(name)
            for name, value in self.environ.items():
                patch.setenv(name, value)
            self.capture.readouterr()
            code = run(["ingest", *map(str, arguments)])
        said = self.capture.readouterr()
        return code, said.out, said.err


@pytest.fixture(name="user")
def _user(tmp_path, capfd):
    return User(tmp_path, capfd)


@pytest.fixture(name="both")
def _both(user):
    user.leave(".claude/projects/-yard/a.jsonl")
    user.leave(".claude/projects/-yard/a/subagents/agent-1.jsonl")
    user.leave(".codex/sessions/2026/10/01/rollout-1.jsonl")
    user.leave(".codex/archived_sessions/rollout-0.jsonl")
    return user


# finding them


def test_nothing_is_found_where_nothing_is(user):
    assert find_homes(user.environ) == []
    (user.home / ".claude" / "projects").mkdir(parents=True)
    assert find_homes(user.environ) == [], "a folder without transcripts is nothing to read"


def test_the_usual_homes(both):
    size = len(CAPTURE % "a")
    root = str(both.home)
    assert both.found() == {
        f"{root}/.claude/projects": ("Claude Code", 2, size + len(CAPTURE % "agent-1")),
        f"{root}/.codex/sessions": ("Codex", 1, len(CAPTURE % "rollout-1")),
        f"{root}/.codex/archived_sessions": ("Codex", 1, len(CAPTURE % "rollout-0")),
    }


def test_what_stands_beside_transcripts_is_no_source(both):
    before = both.found()
    both.leave(".claude/history.jsonl")  # prompts, without usage
    both.leave(".claude/transcripts/ses_1.jsonl")  # tokscale #565
    both.leave(".claude/projects/-yard/a/subagents/agent-1.meta.json", "{}")
    both.leave(".claude/projects/-yard/memory/notes.md")
    both.leave(".codex/history.jsonl")
    both.leave(".codex/log/codex-tui.log")
    assert both.found() == before


def test_compressed_rollouts_count(user):
    user.leave(".codex/sessions/2026/10/01/rollout-1.jsonl.zst")
    assert [home.files for home in find_homes(user.environ)] == [1]


def test_variables_move_the_homes(both):
    both.leave("agents/claude/projects/-shed/b.jsonl")
    both.leave("agents/codex/sessions/rollout-2.jsonl")
    both.environ |= {
        "CLAUDE_CONFIG_DIR": str(both.home / "agents/claude"),
        "CODEX_HOME": str(both.home / "agents/codex"),
    }
    assert list(both.found()) == [f"{both.home}/agents/claude/projects", f"{both.home}/agents/codex/sessions"]


@pytest.mark.parametrize(
    "value", ["{0}/x,{0}/y", " {0}/x , {0}/y/ ,", "{0}/x/projects,~/y", "{0}/x,{0}/y,{0}/x,{0}/none"]
)
def test_a_variable_may_list_several_homes(user, value):
    user.leave("x/projects/-yard/a.jsonl")
    user.leave("y/projects/-yard/b.jsonl")
    user.environ["CLAUDE_CONFIG_DIR"] = value.format(user.home)
    assert list(user.found()) == [f"{user.home}/x/projects", f"{user.home}/y/projects"]


def test_a_home_with_a_comma_in_its_name_is_one(user):
    user.leave("x,y/projects/-yard/a.jsonl")
    user.environ["CLAUDE_CONFIG_DIR"] = f"{user.home}/x,y"
    assert list(user.found()) == [f"{user.home}/x,y/projects"]


def test_the_home_of_some_versions_and_links_to_it_are_found_once(user):
    user.leave("configs/claude/projects/-yard/a.jsonl")
    (user.home / ".claude").symlink_to(user.home / "configs/claude")
    assert list(user.found()) == [f"{user.home}/configs/claude/projects"]
    user.environ["XDG_CONFIG_HOME"] = f"{user.home}/configs"
    assert list(user.found()) == [f"{user.home}/configs/claude/projects"]


def test_an_empty_variable_says_nothing(both):
    before = both.found()
    both.environ |= {"CLAUDE_CONFIG_DIR": "", "CODEX_HOME": " "}
    assert both.found() == before


def test_one_wire_alone(both):
    assert [name for name, _, _ in both.found(wire="codex-rollout").values()] == ["Codex", "Codex"]
    assert both.found(wire="metaharness") == {}


def test_where_it_looked_is_told_for_each_agent(user):
    folders = [folder for _, folder in looked_in(user.environ)]
    assert folders == [
        f"{user.home}/{name}"
        for name in (".claude/projects", ".config/claude/projects", ".codex/sessions", ".codex/archived_sessions")
    ]
    assert {agent.name for agent, _ in looked_in(user.environ)} == {agent.name for agent in AGENTS}


# the command


def test_without_a_path_it_offers_and_reads_nothing(both):
    code, out, err = both.run()
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert lines[0].startswith("Claude Code: 2 files, ")
    assert lines[0].endswith(f", in {both.home}/.claude/projects")
    assert lines[1].startswith("Codex: 1 file, ")
    assert len(lines) == 4
    assert "`runlake ingest --agents` reads the 4 files above" in lines[3]
    assert not (both.home / "lake").exists()


def test_the_offer_names_the_lake_that_was_named(both):
    code, _, err = both.run("--lake", both.home / "my lake", "--wire", "claude-code")
    assert code == 2
    assert f"`runlake ingest --agents --lake '{both.home}/my lake' --wire claude-code` reads the 2 files" in err


def test_without_a_path_and_without_agents_the_error_stays_short(user):
    code, out, err = user.run()
    assert (code, out) == (2, "")
    assert err == "Error: Nothing to read was named. Give files, folders, a quoted glob, or - for stdin.\n"


def test_agents_reads_them_all(both):
    code, out, err = both.run("--agents", "--format", "json")
    assert (code, json.loads(out)[0]["files_new"]) == (0, 4)
    assert err.count(", in /") == 3
    code, out, _ = both.run("--agents", "--format", "json")
    assert (code, json.loads(out)[0]["files_unchanged"]) == (0, 4)


def test_agents_beside_a_path(both):
    capture = both.leave("captures/x.jsonl")
    code, out, _ = both.run("--agents", capture, "--format", "json")
    assert (code, json.loads(out)[0]["files_new"]) == (0, 5)


def test_a_path_alone_reads_no_home(both):
    capture = both.leave("captures/x.jsonl")
    code, out, err = both.run(capture, "--format", "json")
    assert (code, json.loads(out)[0]["files_new"], err) == (0, 1, "")


def test_agents_where_there_are_none(user):
    code, out, err = user.run("--agents")
    assert (code, out) == (2, "")
    assert f"{user.home}/.codex/sessions" in err
    assert "CLAUDE_CONFIG_DIR or CODEX_HOME" in err
    capture = user.leave("captures/x.jsonl")
    code, out, err = user.run("--agents", capture, "--format", "json")
    assert (code, json.loads(out)[0]["files_new"]) == (0, 1)
    assert "No agent has left transcripts" in err, "said, but no reason to fail beside a path"


def test_agents_with_a_wire_that_none_of_them_writes(both):
    code, out, err = both.run("--agents", "--wire", "metaharness")
    assert (code, out) == (2, "")
    assert "claude-code and codex-rollout" in err


def test_a_transcript_that_is_gone_is_told(both):
    both.run("--agents")
    (both.home / ".claude/projects/-yard/a.jsonl").unlink()
    _, out, _ = both.run("--agents", "--format", "json")
    assert json.loads(out)[0]["files_gone"] == 1


def test_what_tools_printed_is_not_read_as_a_run(both):
    # Claude Code keeps long outputs beside the session; one may well be somebody's transcript
    both.leave(".claude/projects/-yard/a/tool-results/toolu_1.txt")
    both.leave("elsewhere/tool-results/toolu_1.txt")
    _, out, _ = both.run("--agents", both.home / "elsewhere", "--format", "json")
    [done] = json.loads(out)
    assert (done["files_new"], done["files_ignored"]) == (5, 1)


# the Python door


def test_a_lake_reads_them_too(both, monkeypatch, tmp_path):
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(both.home))
    Store.open(tmp_path / "lake", create=True)
    with open_lake(tmp_path / "lake") as lake:
        assert lake.ingest(both.leave("captures/x.jsonl"), jobs=1).files_new == 1
        assert lake.ingest(agents=True, jobs=1, wire=None).files_new == 4
        assert lake.ingest(agents=True, jobs=1).files_unchanged == 4
        with pytest.raises(UsageError):
            lake.ingest(agents=True, jobs=1, wire="nosuch")
