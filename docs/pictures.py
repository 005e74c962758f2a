"""Makes the pictures of README from `data/`: python docs/pictures.py (needs `runlake[report]`)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from analytics import open_lake

ROOT = Path(__file__).parents[1]
PICTURES = {
    "tokens_by_day": ("tokens", None),
    "limit_windows": ("limit_windows", None),
}


def make(folder: Path) -> list[Path]:
    """Writes the pictures into a folder; their paths."""
    made = []
    with tempfile.TemporaryDirectory() as place, open_lake(Path(place) / "lake", create=True) as lake:
        lake.ingest(ROOT / "data" / "corpus")
        for name, (report, by) in PICTURES.items():
            made.append(folder / f"{name}.svg")
            lake.chart(report, by).save(made[-1])
    return made


if __name__ == "__main__":
    for path in make(ROOT / "docs" / "pictures"):
        print(path)
