"""Texts that viewers act on, and runs that are called so."""

from __future__ import annotations

import json
import re

from helpers import CLAUDE

HOSTILE = [
    '=HYPERLINK("http://evil.example","x")', "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>', "javascript:alert(1)",
    "</td></table><h1>x", "<!--", "&lt;script&gt;", "a | b", "a\\|b", "[x](javascript:alert(1))", "![x](http://evil.example/)",
    "`rm -rf /`", "# x", "- x", "1. x", "> x", "***", "---", "~~x~~", "@someone", "www.evil.example", "$x$",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m", "\x7f\x08\x08", "\u202egnp.exe", "a\u2066b\u2069", "a\u200fb",
    "a\u2028b", "one\ntwo\nError: three", "'; DROP VIEW events; --", "../../etc/passwd", "%s %n {0} ${x}",
]  # fmt: skip


def write_hostile(lab):
    """One run per hostile text: so are called its id, tools, models and file; so read its reasons and messages."""
    for number, text in enumerate(HOSTILE):
        lines = []
        for line in CLAUDE.read_bytes().splitlines():
            value = json.loads(line)
            value |= {
                key: text for key in ("run", "run_id", "name", "text", "message", "model", "adapter") if key in value
            }
            if value["event"] == "tool.decided" and "reason" in value["decision"]:
                value["decision"]["reason"] = text
            lines.append(json.dumps(value))
        refused = json.dumps({"format": text, "event": text, "run": text})
        name = re.sub(r"[/\0]", "_", text)
        lab.write(f"{number} {name}.jsonl", ("\n".join([*lines, refused]) + "\n").encode())
    lab.write("\x1b[2J\u202e skipped.jsonl", b"{}\n")
    lab.ingest()
