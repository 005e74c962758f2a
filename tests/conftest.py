"""What several tests share: the folders, the update flag, and one lake of the sample corpus."""

from __future__ import annotations

from pathlib import Path

import pytest
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
