"""Subjects in other processes: small programs that answer as they are told, and the one of the guide."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from vmm_conformance.programs.allocator import Allocate, Configuration, Deallocate
from vmm_conformance.programs.program import Program

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "processes.md"
WAIT = '        driver("stream_synchronize", stream=stream)\n'
HELLO = """read start; echo '{"return": {"name": "sh", "contracts": ["allocator"]}}'; """
OPENED = HELLO + """read open; echo '{"return": null}'; """
PROGRAM = Program("allocator", Configuration(), (Allocate(100), Deallocate(0)))


def shell(script: str) -> str:
    """The command for a few lines of shell."""
    return f"sh -c {shlex.quote(script)}"


def far_pool(folder: Path, extra: str = "") -> str:
    """The command of the guide's allocator, without its fault, and with ``extra`` where it deallocates."""
    head, tail = of_the_guide("far_pool.py").split("    def deallocate(self, block, stream):\n")
    return python(folder / "far_pool.py", f"{head}    def deallocate(self, block, stream):\n{extra}{WAIT}{tail}")


def of_the_guide(name: str) -> str:
    """A file that the guide shows."""
    found = re.search(rf"<!-- file: {name} -->\n```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert found
    return found[1]


def python(file: Path, text: str = "") -> str:
    """The command that runs ``file``, with ``text`` in it."""
    if text:
        file.write_text(text, "utf-8")
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(file))}"
