"""Streams of every wire, made up without end: each module writes runs of one wire, `voice` is what they draw from."""
