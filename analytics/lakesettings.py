"""`runlake.json`: what holds for a lake as a whole."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from analytics.errors import LakeError
from analytics.places import Place, is_remote
from analytics.schema import SCHEMA_VERSION

NAME = "runlake.json"


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a lake as a whole; `runlake.json` in its folder."""

    schema_version: int
    created_by: str
    shared: bool = False
    unredacted: bool = False

    @property
    def text(self) -> str:
        """The file's text."""
        return json.dumps(asdict(self), indent=2) + "\n"


def read_settings(root: Place) -> Settings:
    """The settings of the lake at `root`; an error where its columns are not ours."""
    text = read_text(root / NAME)
    if text is None:
        raise LakeError.damaged(root, f"{NAME} is missing, or the table was not made by runlake")
    try:
        said = json.loads(text)
        found, made_by = said["schema_version"], said["created_by"]
        if found != SCHEMA_VERSION:
            raise LakeError.schema_version(root, found, SCHEMA_VERSION, made_by)
        return Settings(**said)
    except (ValueError, TypeError, KeyError) as error:
        raise LakeError.damaged(root, f"{NAME} cannot be read ({error!r})") from error


def read_text(path: Place) -> str | None:
    """A small file; None where there is none."""
    if is_remote(path):
        return _read_object(str(path))
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _read_object(path: str) -> str | None:
    from analytics import objects  # noqa: PLC0415 (local lakes need none of it)

    try:
        return objects.read_text(path)
    except FileNotFoundError as error:
        if error.strerror == objects.NO_BUCKET:
            raise
        return None
