"""What does the installed but unused plugin add to the start of pytest?

``pytest --version`` and an empty run, each with and without the plugin, by turns, in an empty folder.
``python benchmarks/plugin_start.py [--json] [--rounds N]``
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from measuring import Result, command, table

MOST_MS = 20
WITHOUT = ("-p", "no:vmm_conformance")
COMMANDS = {"pytest --version": ("--version",), "pytest, no tests": ("-q", "-p", "no:cacheprovider")}


def spent(folder: str, arguments: Sequence[str]) -> float:
    """Processor milliseconds of one run of pytest."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    unset = {"PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE"}
    environment = {key: value for key, value in os.environ.items() if key not in unset}
    environment["PYTHONPYCACHEPREFIX"] = f"{folder}/.cache"
    subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=folder, env=environment, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def measure(parsed: argparse.Namespace) -> Result:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in COMMANDS.items():
            spent(folder, arguments)
            pairs = [(spent(folder, arguments), spent(folder, (*arguments, *WITHOUT))) for _ in range(parsed.rounds)]
            with_it, without = (statistics.median(column) for column in zip(*pairs, strict=True))
            added = statistics.median(one - other for one, other in pairs)
            rows.append({"command": name, "with_ms": with_it, "without_ms": without, "added_ms": added})
    return {"commands": rows, "most_ms": MOST_MS}


def lines(result: Result) -> list[str]:
    rows = [(row["command"], row["with_ms"], row["without_ms"], row["added_ms"]) for row in result["commands"]]
    head = ("processor time", "with the plugin, ms", "without, ms", "added, ms")
    return [*table(head, rows), f"(goal: at most {result['most_ms']} ms)"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=15, help="runs of each kind; medians are over them")


if __name__ == "__main__":
    command(__doc__, measure, lines, arguments=arguments)
