"""docs/object-storage.md: its commands run, against a store on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CORPUS, ROOT

TEXT = (ROOT / "docs" / "object-storage.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_its_commands_run_in_order(bucket, tmp_path):
    bucket.client.create_bucket(Bucket="example-bucket")
    for key in ("transcripts/a.jsonl", "transcripts/north/2026-11-02.jsonl.gz"):
        data = next((CORPUS / "metaharness").rglob("*.jsonl")).read_bytes()
        bucket.client.put_object(Bucket="example-bucket", Key=key, Body=data)
    shutil.copytree(CORPUS / "metaharness", tmp_path / "data" / "corpus" / "metaharness")
    lines = [line for block in blocks("sh") for line in block.splitlines() if not line.startswith("pip ")]
    assert len(lines) > 10
    bin_folder = str(Path(sys.executable).parent)
    environment = bucket.environ(PATH=bin_folder + os.pathsep + os.environ["PATH"])
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", "\n".join(lines)], cwd=tmp_path, env=environment, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    python = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks("python"))], cwd=tmp_path, text=True, capture_output=True,
        env=environment | {"AWS_ALLOW_HTTP": "true"},
    )  # fmt: skip
    assert python.returncode == 0, python.stderr
    assert "metaharness" in python.stdout


def test_what_it_says_of_errors_is_what_errors_say():
    code = "".join((ROOT / "analytics" / name).read_text() for name in ("errors.py", "objects.py"))
    told = re.findall(r"^\| `([^`]+)` \|", TEXT.split("## What goes wrong")[1], re.MULTILINE)
    assert len(told) == 6
    for words in told:
        assert words.removesuffix(" …") in re.sub(r'"\n\s*f?"', "", code), words
