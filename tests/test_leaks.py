"""A lake made of streams full of secrets, looked through byte by byte: no column, no log and no SQL file has one.

Every made-up secret is one short unit again and again, so that a part of it is found as well as the whole.
"""

from __future__ import annotations

import copy
import gzip
import itertools
import json
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import BLOCKED, CANCELED, CLAUDE, CODEX, EXPORTED, FIXTURES, GENERIC, LEDGER, RECORDED, Lab

from analytics import feeding
from analytics.cli import run

UNIT, UPPER, LETTERS = "Qz7kx9", "QZ7KX9", "QzLkxM"
MARKS = [unit.encode(encoding) for unit in (UNIT, UPPER, LETTERS) for encoding in ("utf-8", "utf-16-le", "utf-16-be")]
HEAD, END = (f"-----{word} PRIVATE" + " KEY-----" for word in ("BEGIN", "END"))
PEM = "\n".join([HEAD, *([(UNIT * 11)[:64]] * 3), (UNIT * 3)[:14] + "==", END])

SECRETS = {
    "private_key": f"the key:\n{PEM}\nthat was it",
    "sk_key": "use sk-" + UNIT * 8 + " now",
    "github_token": "gh" + "p_" + UNIT * 6,
    "bearer_token": "curl -H 'Authorization: Bearer " + UNIT * 5 + "' x",
    "aws_access_key": "id AK" + "IA" + (UPPER * 3)[:16] + ", region",
    "slack_token": "xox" + "b-123456789012-" + UNIT * 4,
    "google_api_key": "?key=AI" + "za" + (UNIT * 6)[:35] + "&q",
    "gitlab_token": "gl" + "pat-" + UNIT * 4,
    "npm_token": "npm" + "_" + UNIT * 6,
    "hf_token": "hf" + "_" + (LETTERS * 6)[:34],
    "jwt": "ey" + "J" + UNIT * 4 + ".ey" + "J" + UNIT * 8 + "." + UNIT * 7,
    "url_credentials": "psql postgres://plume:" + UNIT * 2 + "@db.example:5432/app",
    "authorization_header": "Authorization: Basic " + UNIT * 6 + "==\r\nHost: a.example",
    "json_key": json.dumps({"ok": True, "password": UNIT * 3}),
    "json_key_2": json.dumps({"output": json.dumps({"api_key": UNIT * 3, "n": 1})}),
    "json_key_3": json.dumps({"a": json.dumps({"b": json.dumps({"clientSecret": UNIT * 3})})}),
    "secret_assignment": "export SERVICE_TOKEN='" + UNIT * 3 + "'\n",
    "small_letters": "login --password=" + UNIT * 2 + " --user plume",
}
WIRES = {
    "metaharness": [CLAUDE, CODEX],
    "platonic-core": [RECORDED, LEDGER, CANCELED],
    "harness-lab": [BLOCKED, EXPORTED, GENERIC],
    "claude-stream": sorted((FIXTURES / "claude-stream").iterdir()),
    "codex-exec": sorted((FIXTURES / "codex-exec").iterdir()),
    "codex-rollout": sorted((FIXTURES / "codex-rollout").glob("[br]*.jsonl")),
    "claude-code": sorted((FIXTURES / "claude-code").glob("*.jsonl")),
}
MOST_PLACES = 90  # per sample


def stored(lake: Path) -> dict[str, bytes]:
    """All that the lake holds, decompressed: what stands where → its bytes. Files as they are, columns as values."""
    found: dict[str, bytes] = {}
    for path in sorted(lake.rglob("*")):
        if not path.is_file():
            continue
        name = str(path.relative_to(lake))
        found[name] = path.read_bytes()
        if path.suffix == ".parquet":
            table = pq.ParquetFile(path).read()
            for column in table.column_names:
                chunks = table.column(column).chunks
                found[f"{name} {column}"] = b"".join(part for chunk in chunks for part in buffers(chunk))
    return found


def buffers(array: pa.Array) -> list[bytes]:
    return [buffer.to_pybytes() for buffer in array.buffers() if buffer is not None]


def leaks(lake: Path) -> list[tuple[str, bytes]]:
    """Where a part of a secret stands, and what is around it."""
    found = []
    for place, data in stored(lake).items():
        for mark in MARKS:
            at = data.find(mark)
            if at >= 0:
                found.append((place, data[max(0, at - 60) : at + 60]))
    return found


def columns_with(found: list[tuple[str, bytes]], record: str) -> set[str]:
    """The columns of a record kind in which something was found."""
    return {place.split(" ")[1] for place, _ in found if place.startswith(f"record={record}/") and " " in place}


def leaves(value, at=()):
    """The places of all strings of a JSON value."""
    if isinstance(value, str):
        yield at
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*at, key))


def replaced(value, at, change):
    """The value with the string at that place changed."""
    made = copy.deepcopy(value)
    holder = made
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = change(holder[at[-1]])
    return made


def objects_of(sample: Path) -> list[dict]:
    found = []
    for line in sample.read_bytes().splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def plant(lab: Lab, wire: str) -> int:
    """Files of the wire: per place of its lines one whose text at that place ends in a secret, in a good line.

    And one file of the untouched lines with all the changed ones behind it, most of which are refused.
    """
    kinds = itertools.cycle(SECRETS.values())
    count = 0
    for sample in WIRES[wire]:
        objects = objects_of(sample)
        first = {tuple(k for k in at if isinstance(k, str)): (n, at) for n, o in enumerate(objects) for at in leaves(o)}
        places = list(first.values())[:MOST_PLACES]
        suffix = sample.suffix
        behind = [json.dumps(value) for value in objects]
        for n, at in places:
            said = next(kinds)
            changed = [
                json.dumps(replaced(value, at, lambda old, said=said: f"{old} {said}") if number == n else value)
                for number, value in enumerate(objects)
            ]
            behind += [changed[n], json.dumps({**objects[n], said: 1}), changed[n][: len(changed[n]) // 2]]
            lab.write(f"{wire}/{sample.stem}-{count}{suffix}", ("\n".join(changed) + "\n").encode())
            count += 1
        lab.write(f"{wire}/{sample.stem}-behind{suffix}", ("\n".join(behind) + "\n").encode())
    return count


@pytest.mark.parametrize("wire", WIRES)
def test_no_secret_of_any_place_of_any_wire_is_stored(tmp_path, wire):
    lab = Lab(tmp_path)
    assert plant(lab, wire) >= 20
    report = lab.ingest(jobs=1)
    assert report.redactions > 100
    assert leaks(lab.path) == []
    assert lab.sql(f"SELECT count(DISTINCT wire) FROM events WHERE wire = '{wire}'") == [(1,)]


@pytest.mark.parametrize("wire", WIRES)
def test_the_search_would_see_them(tmp_path, wire):
    """Read with --no-redact, the same streams leave secrets in the payload, the refused bytes, and further columns."""
    lab = Lab(tmp_path)
    plant(lab, wire)
    lab.ingest(redact=False, jobs=1)
    found = leaks(lab.path)
    assert columns_with(found, "event") >= {"payload"}
    assert len(columns_with(found, "event")) >= 6
    assert columns_with(found, "refusal") >= {"raw"}
    assert columns_with(found, "source")


def ordinary(number: int) -> bytes:
    return json.dumps({"kind": "assistant_message", "payload": {"text": f"hello {number}"}}).encode() + b"\n"


HELLO = b"".join(map(ordinary, range(12)))
CUTS = [text.encode() for text in SECRETS.values()]


def document(secret: str) -> bytes:
    event = {
        "sequence": 0,
        "timestamp": "2026-10-15T06:00:00",
        "kind": "system",
        "source": secret,
        "payload": {secret: 1},
    }
    runs = [{"id": secret, "events": [event], "notes": {"password": UNIT * 2}}]
    return json.dumps({"schema_version": "2", "experiment": {"id": secret, "x": 1}, "runs": runs}, indent=1).encode()


def write_odd_places(lab: Lab) -> None:
    """Where a secret stands in no good line, or is cut."""
    meta = CLAUDE.read_bytes()
    for number, text in enumerate(SECRETS.values()):
        raw = json.dumps({"text": text}).encode()
        lab.write(f"plain-{number}.log", HELLO + text.encode() + b"\n" + HELLO)
        lab.write(
            f"packed-{number}.log.gz", gzip.compress(HELLO + text.encode() + raw + b"\n" + ordinary(number), mtime=0)
        )
        lab.write(
            f"cut-{number}.log.gz", gzip.compress(HELLO * 9 + text.encode() + b"\n" + os.urandom(9999), mtime=0)[:-5000]
        )
        lab.write(f"refused-{number}.jsonl", meta + raw + b"\n" + raw[:-9] + raw + b"\n\0" + raw + b"\n")
        lab.write(
            f"not-utf8-{number}.jsonl",
            meta + b'{"a":"\xff",' + raw[1:] + b"\n" + meta.splitlines()[1][:-1] + b"\xff" + raw,
        )
        lab.write(f"torn-{number}.jsonl", meta + meta.splitlines()[1][:40] + raw + b"\n")
        lab.write(f"document-{number}.json", document(text))
        lab.write(f"bad-document-{number}.json", document(text).replace(b'"runs": [', b'"runs": {"0": ', 1))
        lab.write(f"utf16-{number}.jsonl", (meta.decode() + text).encode("utf-16"))
        if HEAD not in text:  # each line would have to be known as a part of the key
            lab.write(f"utf16-plain-{number}.log", HELLO + text.encode("utf-16-le") + b"\n" + HELLO)
        lab.write(f"skipped-{number}.txt", text.encode() + b"\n")
        name = text.replace("/", " ")[:200]  # no path has // in it, so none has the password of a URL
        if "postgres" not in name:
            lab.write(f"named {name}.jsonl", meta + b'{"a":%d}\n' % number)
    tag = json.dumps({"format": {"password": UNIT * 3}, "event": {"token": UNIT * 3}}).encode()
    lab.write(
        "quoted.jsonl",
        meta
        + tag
        + b"\n"
        + meta.splitlines()[1].replace(b'"seq"', b'"token":"' + UNIT.encode() * 3 + b'","seq"')
        + b"\n",
    )


def test_no_secret_stands_in_an_odd_place(tmp_path):
    lab = Lab(tmp_path)
    write_odd_places(lab)
    lab.ingest(jobs=1)
    assert leaks(lab.path) == []
    statuses = dict(lab.sql("SELECT status, count(*) FROM sources GROUP BY 1"))
    assert statuses["refused"] > len(SECRETS)
    assert statuses["read"] > 6 * len(SECRETS)
    assert lab.failed_checks() == {}


def test_the_search_would_see_the_odd_places(tmp_path):
    lab = Lab(tmp_path)
    write_odd_places(lab)
    lab.ingest(redact=False, jobs=1)
    found = leaks(lab.path)
    assert columns_with(found, "source") >= {"path", "skeleton", "runs"}
    assert columns_with(found, "refusal") >= {"path", "raw", "detail"}
    assert columns_with(found, "event") >= {"payload", "run_id"}


def torn(text: bytes) -> list[int]:
    """Where to cut a text with a secret: all places, thinned out."""
    return [*range(1, len(text), 3), len(text)]


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("sample", [CLAUDE, GENERIC], ids=["metaharness", "generic"])
def test_a_file_cut_anywhere_in_a_secret_keeps_no_part_of_it(tmp_path, kind, sample):
    """As the pending tail of a file, and as the unterminated last line where nothing can follow."""
    lab = Lab(tmp_path)
    good = sample.read_bytes()
    raw = json.dumps({"kind": "x", "text": SECRETS[kind]}).encode()
    text = raw if sample == CLAUDE else SECRETS[kind].encode()
    for cut in torn(text):
        lab.write(f"{cut}{sample.suffix}", good + text[:cut])
    lab.ingest(jobs=1)
    if sample == CLAUDE:
        assert lab.sql("SELECT count(*) > 5 FROM sources WHERE pending_bytes > 0") == [(True,)]
    assert [place for place in leaks(lab.path) if is_more_than_a_beginning(place[1])] == []


def is_more_than_a_beginning(around: bytes) -> bool:
    """The first characters of a value that is a secret by its name alone may stand where a text breaks off."""
    return any(mark + mark[:2] in around for mark in MARKS)


def test_a_file_that_grows_is_looked_through_from_where_it_goes_on(tmp_path):
    lab = Lab(tmp_path)
    good = CLAUDE.read_bytes()
    lines = good.splitlines(keepends=True)
    texts = [json.dumps({"kind": "x", "text": text}).encode() for text in SECRETS.values()]
    for number, text in enumerate(texts):
        lab.write(f"{number}.jsonl", b"".join(lines[:3]) + text + b"\n" + lines[3] + text[: len(text) // 2])
    lab.ingest(jobs=1)
    for number, text in enumerate(texts):
        with (lab.sources / f"{number}.jsonl").open("ab") as file:
            file.write(text[len(text) // 2 :] + b"\n" + lines[4].replace(b'"event"', text[:-1] + b',"event"') + text)
    report = lab.ingest(jobs=1)
    assert report.files_grown == len(texts)
    assert leaks(lab.path) == []


@pytest.mark.parametrize("kind", ["sk_key", "private_key", "secret_assignment"])
def test_a_limit_cuts_no_secret_in_two(tmp_path, monkeypatch, kind):
    """What is kept of a line that is too long ends at the limit, and there the secret stands."""
    from analytics import tally

    lab = Lab(tmp_path)
    monkeypatch.setattr(tally.kept_of, "__defaults__", (4096,))
    monkeypatch.setattr(tally.Tally.refuse, "__kwdefaults__", tally.Tally.refuse.__kwdefaults__ | {"limit": 4096})
    monkeypatch.setattr(feeding, "BLOCK_BYTES", 8192)
    text = json.dumps(SECRETS[kind])[1:-1].encode()
    for back in range(0, len(text), 5):
        line = b'{"kind":"assistant_message","payload":{"text":"' + b". " * 4096
        line = line[: 4096 - back] + b" " + text + b" x" * 400_000 + b'"}}\n'
        lab.write(f"{back}.jsonl", HELLO + line + HELLO)
    report = lab.ingest(max_line_bytes=8192, jobs=1)
    assert report.refusals_by_reason == {"line_too_long": len(range(0, len(text), 5))}
    assert lab.sql("SELECT max(octet_length(raw)) FROM refusals") == [(4096,)]
    assert leaks(lab.path) == []


def test_compaction_and_a_second_commit_bring_none_back(tmp_path):
    lab = Lab(tmp_path)
    write_odd_places(lab)
    lab.ingest(jobs=1)
    for name in ("quoted.jsonl", "plain-3.log"):
        (lab.sources / name).unlink()
    lab.write("plain-4.log", HELLO + b"rewritten " + SECRETS["sk_key"].encode() + b"\n")
    lab.ingest(jobs=1)
    assert run(["compact", "--lake", str(lab.path), "--vacuum", "-o", os.devnull, "--format", "csv"]) == 0
    assert leaks(lab.path) == []


def test_a_path_with_a_secret_is_known_again(tmp_path, capsys):
    """The stored path is redacted; the same file is unchanged or grown as any other, and `status` says hidden."""
    lab = Lab(tmp_path)
    path = lab.write(f"a {SECRETS['github_token']}.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    assert lab.ingest().files_unchanged == 1
    with path.open("ab") as file:
        file.write(b"\n")
    assert lab.ingest().files_grown == 1
    assert run(["status", str(lab.sources), "--each", "--lake", str(lab.path), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["state"], Path(row["path"]).name) for row in rows] == [("hidden", "a [REDACTED:github_token].jsonl")]
    assert leaks(lab.path) == []


def test_the_files_beside_the_data_are_looked_through_as_well(tmp_path):
    lab = Lab(tmp_path)
    lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    names = {place.split(" ")[0].split("/")[0] for place in stored(lab.path)}
    assert names >= {"open.sql", "views.sql", "_delta_log", "runlake.json", ".lock", "record=event", "record=source"}
    assert subprocess.run(["grep", "-rc", UNIT, str(lab.path)], capture_output=True, text=True).returncode == 1
