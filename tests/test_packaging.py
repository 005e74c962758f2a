"""What pyproject promises is what a wheel holds."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
from conftest import ROOT

TEXT = (ROOT / "pyproject.toml").read_text()
PROJECT = tomllib.loads(TEXT)["project"]


def files(folder, pattern="*"):
    return {str(file.relative_to(ROOT / folder)) for file in (ROOT / folder).rglob(pattern) if file.is_file()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def test_the_files_people_read_are_the_files_that_run(wheel):
    names = wheel.namelist()
    shipped = {name.removeprefix("analytics/_queries/") for name in names if name.startswith("analytics/_queries/")}
    assert shipped == files("queries")
    for name in shipped:
        assert wheel.read(f"analytics/_queries/{name}") == (ROOT / "queries" / name).read_bytes()


def test_the_sample_corpus_ships(wheel):
    prefix = "analytics/_data/corpus/"
    assert {name.removeprefix(prefix) for name in wheel.namelist() if name.startswith(prefix)} == files("data/corpus")


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    info = f"runlake-{PROJECT['version']}.dist-info"
    assert tops == {"analytics", info}
    assert "runlake = analytics.entry:main" in wheel.read(f"{info}/entry_points.txt").decode()
    assert f"{info}/licenses/LICENSE" in wheel.namelist()
    assert "analytics/py.typed" in wheel.namelist()
    assert {"analytics/html/report.css", "analytics/html/report.js"} <= set(wheel.namelist())


def test_each_dependency_has_its_reason():
    bare = [line.strip() for line in TEXT.splitlines() if re.match(r'\s+"[A-Za-z0-9_.-]+>=[^"]*",?\s*(#.*)?$', line)]
    assert len(bare) > len(PROJECT["dependencies"])
    assert [line for line in bare if not re.search(r"#\s*\w", line)] == []


def test_constraints_pin_every_dependency_and_name_no_place():
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in pins}
    wanted = [
        *PROJECT["dependencies"],
        *PROJECT["optional-dependencies"]["notebook"],
        *PROJECT["optional-dependencies"]["test"],
    ]
    names = {re.match(r"[A-Za-z0-9_-]+", line)[0].lower() for line in wanted} - {"runlake"}
    assert names - pinned == set()
    assert all(re.fullmatch(r"[A-Za-z0-9_.+-]+", version) for version in pins.values())


def test_the_changelog_starts_with_this_version():
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == PROJECT["version"]
