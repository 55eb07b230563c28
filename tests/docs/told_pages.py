"""Pages that tell what to type: their files, their changes and their commands, carried out in a folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.append(str(ROOT / "website"))

from pages import pages  # noqa: E402 (a folder of scripts, not a package)

GENERATED = pages()
"""The pages of the site that are made when it is built."""
_STEP = re.compile(r"<!-- (append|new|change|file): (\S+) -->\n```\w+\n(.*?)```|```console\n(.*?)```", re.DOTALL)


class Step(NamedTuple):
    """A file to write or to change, or commands (``action`` is ``run``) with what they print."""

    action: str
    name: str
    text: str


def steps(page: Path) -> list[Step]:
    """What ``page`` tells to do, in its order."""
    found = _STEP.findall(page.read_text("utf-8"))
    return [Step(action or "run", name, text or shown) for action, name, text, shown in found]


def carry_out(root: Path, step: Step) -> None:
    """Write or change a file below ``root``."""
    file = root / step.name
    if step.action in ("new", "file"):
        file.write_text(step.text, "utf-8")
    elif step.action == "append":
        file.write_text(file.read_text("utf-8") + "\n\n" + step.text, "utf-8")
    else:
        file.write_text(changed(file.read_text("utf-8"), step.text.splitlines()), "utf-8")


def changed(text: str, lines: list[str]) -> str:
    """``text`` after a diff without positions: each line that is kept or removed is looked up by itself."""
    result = text.splitlines()
    at, waiting = 0, []
    for line in lines:
        mark, body = line[0], line[1:]
        if mark == "+":
            waiting.append(body)
            continue
        found = result.index(body)
        result[found:found] = waiting
        at, waiting = found + len(waiting) + 1, []
        if mark == "-":
            del result[at - 1]
            at -= 1
    result[at:at] = waiting
    return "\n".join(result) + "\n"


def session(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines it is said to print."""
    parts: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            parts.append((line[2:], []))
        else:
            parts[-1][1].append(line)
    return parts


def prints(expected: list[str], printed: str) -> bool:
    """Whether ``printed`` is what was expected: ``...`` stands for any lines, or for the rest of one."""
    pattern = ""
    for line in expected:
        if line == "...":
            pattern += "(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.split("..."))) + r"(?: *)\n"
    return re.fullmatch(pattern, printed if printed.endswith("\n") or not printed else printed + "\n") is not None


def shell(command: str, folder: Path) -> str:
    """What ``command`` prints in ``folder``, to both streams, with the commands of this Python first."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("VMM_", "PYTEST_"))}
    environment |= {"PATH": os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]]), "COLUMNS": "80"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}  # two versions of a file within a second are not told apart
    call = ["bash", "-c", f"{{ {command}\n}} 2>&1"]
    return subprocess.run(call, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True).stdout
