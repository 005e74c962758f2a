"""docs/object-storage.md: its commands run, against a store on this machine."""

from __future__ import annotations

import re
import shlex
import shutil

from conftest import CORPUS, ROOT

from analytics.cli import run

TEXT = (ROOT / "docs" / "object-storage.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_its_commands_run_in_order(bucket, tmp_path, monkeypatch, capsys):
    bucket.client.create_bucket(Bucket="example-bucket")
    for key in ("transcripts/a.jsonl", "transcripts/north/2026-11-02.jsonl.gz"):
        data = next((CORPUS / "metaharness").rglob("*.jsonl")).read_bytes()
        bucket.client.put_object(Bucket="example-bucket", Key=key, Body=data)
    shutil.copytree(CORPUS / "metaharness", tmp_path / "data" / "corpus" / "metaharness")
    monkeypatch.chdir(tmp_path)
    ran = 0
    for line in "".join(blocks("sh")).splitlines():
        words = shlex.split(line)
        if words[0] == "export":
            monkeypatch.setenv(*words[1].split("=", 1))
        elif words[0] == "runlake":
            assert run(words[1:]) == 0, line
            ran += 1
        else:
            assert words[0] == "pip", line
    assert ran > 8
    told = capsys.readouterr().out.split()
    assert "north" in told
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    for block in blocks("python"):
        exec(block, {})
    assert "metaharness" in capsys.readouterr().out


def test_what_it_says_of_errors_is_what_errors_say():
    code = "".join((ROOT / "analytics" / name).read_text() for name in ("errors.py", "objects.py"))
    told = re.findall(r"^\| `([^`]+)` \|", TEXT.split("## What goes wrong")[1], re.MULTILINE)
    assert len(told) == 6
    for words in told:
        assert words.removesuffix(" …") in re.sub(r'"\n\s*f?"', "", code), words
