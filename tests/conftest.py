"""What several tests share: the folders, the update flag, and one lake of the sample corpus."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
import typer.main
from browser import browser  # noqa: F401 (a fixture)

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "data" / "corpus"


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="write generated files and expectations anew")


@pytest.fixture(scope="session")
def update(request):
    """True: a test that compares with a stored text writes it instead."""
    return request.config.getoption("--update")


@pytest.fixture(scope="session")
def sample_lake(tmp_path_factory):
    """The sample corpus, ingested once. Tests only read it."""
    from analytics import open_lake

    lake = open_lake(tmp_path_factory.mktemp("sample") / "lake", create=True)
    lake.ingest(CORPUS)
    return lake


@pytest.fixture(autouse=True)
def no_terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-xdist tells its workers the width of the terminal; our tables would keep to it."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session", autouse=True)
def commands_made_once():
    """Typer makes all commands anew for each command line, as it must in a process that runs one; a test runs many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session")
def object_store():
    """An object store on 127.0.0.1, one for a test process."""
    for module, extra in (("s3fs", "runlake[s3]"), ("upath", "runlake[s3]"), ("moto.server", "moto[server]")):
        pytest.importorskip(module, reason=f"lakes and sources in object stores need `pip install '{extra}'`")
    from objectstore import serving

    with serving() as store:
        yield store


@pytest.fixture
def bucket(object_store, monkeypatch: pytest.MonkeyPatch):
    """An empty bucket in it, and the environment to reach it."""
    from objectstore import KEYS, new_bucket

    for name in [name for name in os.environ if name.startswith(("AWS_", "RUNLAKE_"))]:
        monkeypatch.delenv(name)
    for name, text in (KEYS | {"AWS_ENDPOINT_URL": object_store.endpoint}).items():
        monkeypatch.setenv(name, text)
    yield new_bucket(object_store)
    object_store.fail()
