"""A private key that stands on several lines of a source: gone from every row, whatever line or block cuts it."""

from __future__ import annotations

import base64
import random

import pytest
from helpers import CANCELED, CLAUDE, Lab, Reader, check_conservation, rebuild

from analytics import feeding, reading
from analytics.key_lines import part

HEAD, END = (f"-----{word} RSA PRIVATE" + " KEY-----" for word in ("BEGIN", "END"))
BODY = [base64.b64encode(random.Random(seed).randbytes(48)).decode() for seed in range(12)]
SHORT = base64.b64encode(random.Random(99).randbytes(11)).decode()
KEY = [HEAD, *BODY, SHORT, END]
ENCRYPTED = [HEAD, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0011223344556677", "", *BODY, SHORT, END]
PLAIN = b'{"kind":"assistant_message","payload":{"text":"hello"}}\nhere it is:\n'
MARK = "[REDACTED:private_key]"


def text_of(key: list[str], sign: str = "") -> bytes:
    return "".join(f"{sign}{line}\n" for line in key).encode()


def everything(reading_) -> str:
    return repr(reading_.comparable())


@pytest.fixture
def reader(tmp_path):
    return Reader(tmp_path / "lake")


@pytest.mark.parametrize("key", [KEY, ENCRYPTED, KEY[:-1], KEY[:-2]], ids=["whole", "encrypted", "no end", "cut"])
@pytest.mark.parametrize("sign", ["", "+", "  ", "   12\t"])
def test_in_plain_text_only_the_key_goes(tmp_path, reader, key, sign):
    source = tmp_path / "a.log"
    source.write_bytes(PLAIN + text_of(key, sign) + b"it ends here\nanother line\n")
    _, made = reader.read(source)
    check_conservation(made)
    kept = [sign + (MARK if line in (*BODY, SHORT) else line) for line in key]
    wanted = PLAIN + "".join(f"{line}\n" for line in kept).encode() + b"it ends here\nanother line\n"
    assert rebuild(made) == wanted
    assert made.source["redactions"] == sum(MARK in line for line in kept)
    assert not [line for line in (*BODY, SHORT) if line in everything(made)]


@pytest.mark.parametrize("sample", [CLAUDE, CANCELED])
def test_refused_lines_keep_no_key(tmp_path, reader, sample):
    """On a wire without plain text each line of the key is a refusal, with its size and digest as they were."""
    source = tmp_path / "a.jsonl"
    source.write_bytes(sample.read_bytes() + text_of(KEY))
    _, made = reader.read(source)
    check_conservation(made)
    assert not [line for line in (*BODY, SHORT) if line in everything(made)]
    marked = [row for row in made.refusals if row["raw"] == MARK.encode()]
    assert [row["bytes"] for row in marked] == [len(line) for line in (*BODY, SHORT)]
    assert [row["redactions"] for row in marked] == [1] * len(marked)


def test_a_torn_record_may_begin_a_key(tmp_path, reader):
    source = tmp_path / "a.log"
    source.write_bytes(PLAIN + b'{"kind":"tool_result","payload":{"text":"' + text_of(KEY) + b'"}}\n')
    _, made = reader.read(source)
    assert not [line for line in (*BODY, SHORT) if line in everything(made)]


@pytest.mark.parametrize("block_bytes", [512, 700, 1024])
def test_a_block_may_end_inside_the_key(tmp_path, reader, block_bytes, monkeypatch):
    source = tmp_path / "a.log"
    source.write_bytes(PLAIN * 3 + text_of(KEY) + PLAIN + text_of(KEY) + b"it ends here\n")
    _, whole = reader.read(source)
    monkeypatch.setattr(feeding, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(feeding, "ROOM_BYTES", 64)
    monkeypatch.setattr(reading, "HEAD_BYTES", 256)
    _, made = reader.read(source)
    assert not [line for line in (*BODY, SHORT) if line in everything(made)]
    assert rebuild(made) == rebuild(whole)


def test_a_file_that_grows_inside_the_key(tmp_path, reader):
    """Cut anywhere: the tail of an unterminated line is part of the key as well, and nothing is counted twice."""
    data = CLAUDE.read_bytes() + text_of(KEY) + b"it ends here\n"
    source = tmp_path / "a.jsonl"
    source.write_bytes(data)
    _, whole = reader.read(source)
    begin = len(CLAUDE.read_bytes())
    for cut in range(begin + 5, len(data), 37):
        reader.clear()
        source.write_bytes(data[:cut])
        record, first = reader.read(source)
        tail = data[:cut].rsplit(b"\n", 1)[1].decode()
        if tail and any(line.startswith(tail) for line in BODY):
            assert first.source["tail"] in (MARK.encode(), tail.encode())
            assert len(tail) < 20 or first.source["tail"] == MARK.encode()
        source.write_bytes(data)
        _, made = reader.read(source, record, first)
        assert made.comparable() == whole.comparable()


def test_two_sources_in_one_block_do_not_share_a_key(tmp_path):
    """The first ends inside a key; what the second begins with is its own."""
    lab = Lab(tmp_path)
    lab.write("a.log", PLAIN + text_of(KEY[:4]))
    lab.write("b.log", (BODY[7] + "\n").encode() * 2 + PLAIN)
    lab.ingest()
    assert lab.sql("SELECT count(*) FROM events WHERE payload = '" + BODY[7] + "'") == [(2,)]
    assert lab.sql("SELECT sum(redactions)::INT FROM events") == [(3,)]


@pytest.mark.parametrize("line", [b"and that was it", b"done.", b'{"a":1}', b"ok", b"password", b"a b c d"])
def test_words_end_a_key(line):
    is_inside, clean = part(line)
    assert (is_inside, clean) == ((True, MARK.encode()) if line == b"password" else (False, None))
