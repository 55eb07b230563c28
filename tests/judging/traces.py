"""Histories from anywhere, written by hand: each call adds a line."""

from __future__ import annotations

import io
import json

from vmm_conformance.judging import judge_file
from vmm_conformance.running.histories import load_history

G = 4096
A, B = 0x10_0000, 0x20_0000
HEAD = {"format": "vmm-conformance history", "version": 1, "header": {"d": [["granule", G]]}}


class Trace:
    """``header`` besides the granule. Each call returns the number of its line."""

    def __init__(self, **header):
        pairs = [["granule", G], *([key, value] for key, value in header.items())]
        self.lines = [json.dumps({**HEAD, "header": {"d": pairs}})]

    def __call__(self, kind, *args, status=0, result=None, who="subject"):
        self.lines.append(json.dumps([0, 0, who, kind, list(args), status, result]))
        return len(self.lines)

    def block(self, address=A, handle=1, rights=3):
        self("reserve", G, 0, 0, result=address)
        self("create", G, 0, 0, result=handle)
        self("map", address, G, handle, 0)
        self("set_access", address, G, [[0, rights]])

    def gone(self, address=A, handle=1):
        self("unmap", address, G)
        self("release", handle)
        self("address_free", address, G)

    def text(self):
        return "".join(f"{line}\n" for line in self.lines)

    def history(self):
        return load_history(self.text())

    def judged(self):
        return judge_file(io.StringIO(self.text()))

    def found(self):
        return [(wrong.family, wrong.invariant, wrong.line, wrong.cause) for wrong in self.judged().wrong]
