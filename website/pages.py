"""The pages of the documentation that nobody writes: commands, options, contracts, schemas, and pages from elsewhere.

They are made when the site is built, so they cannot be out of date. ``pages()`` has all of them by their path
under ``docs/``.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Final

from contract_pages import contracts
from schema_pages import PROGRAMS, REPORTS, programs, reports

from vmm_conformance.cli import main
from vmm_conformance.invocation import OPTIONS

ROOT: Final = Path(__file__).parents[1]
MOVED: Final = {
    "reference/changes.md": "CHANGELOG.md",
    "reference/vectors.md": "suites/vmm_suites/vectors/README.md",
    "explanation/porting.md": "reference/README.md",
}
"""Pages that lie elsewhere in the repository, and are pages of the site as well."""

_LINKS: Final = {
    "../docs/invariants.md": "../invariants.md",
    "../suites/vmm_suites/vectors/README.md": "../reference/vectors.md",
    "example_consumer.py": "example_consumer.py",
}
_BESIDE: Final = {"reference/example_consumer.py": "suites/vmm_suites/vectors/example_consumer.py"}


def pages() -> dict[str, str]:
    """Path under ``docs/`` to text: every generated page, and the files that they lead to."""
    made = {
        "reference/commands.md": commands(),
        "reference/options.md": options(),
        "reference/contracts.md": contracts(),
        "reference/programs.md": programs(),
        "reference/reports.md": reports(),
    }
    made |= {name: _linked((ROOT / file).read_text("utf-8")) for name, file in MOVED.items()}
    made |= {name: (ROOT / file).read_text("utf-8") for name, file in _BESIDE.items()}
    return made | {f"reference/{file.name}": file.read_text("utf-8") for file in (PROGRAMS, *REPORTS)}


def _linked(text: str) -> str:
    """``text`` with links that work where it is now."""
    return re.sub(r"\]\(([^)#]+)", lambda link: f"]({_LINKS.get(link[1], link[1])}", text)


def commands() -> str:
    """What ``--help`` says, of every command."""
    lines = ["# Commands", "", "What each command says of itself, `vmm-conformance COMMAND --help`.", ""]
    lines += ["```text", help_of(), "```", ""]
    for name in command_names():
        lines += [f"## {name}", "", "```text", help_of(name), "```", ""]
    return "\n".join(lines)


def command_names() -> list[str]:
    """All commands, in the order of the help."""
    listed = help_of().partition("COMMAND\n")[2].partition("\n\n")[0]
    return re.findall(r"^    ([a-z]+)\b", listed, re.MULTILINE)


def help_of(*command: str) -> str:
    """The help of a command, in 80 columns and without colours."""
    printed = io.StringIO()
    with _environment(COLUMNS="80", NO_COLOR="1"), redirect_stdout(printed):
        try:
            main([*command, "--help"])
        except SystemExit:
            return printed.getvalue().rstrip()
    raise AssertionError("--help came back")


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def options() -> str:
    """Every option in all four forms."""
    lines = [
        "# Options",
        "",
        "The same options, to pytest, to `vmm-conformance run`, in the environment and in an ini file. The first in"
        " this order wins. A switch takes `1` or `0`, `true` or `false` in the environment and in an ini file.",
        "",
    ]
    for option in OPTIONS:
        value = f" {option.metavar}" if option.metavar else ""
        lines += [
            f"## {option.name}",
            "",
            f"{option.help[0].upper()}{option.help[1:]}.",
            "",
            "| where | form |",
            "|---|---|",
            f"| pytest | `--vmm-{option.name}{value}` |",
            f"| `vmm-conformance` | `--{option.name}{value}` |",
            f"| environment | `{option.environment}` |",
            f"| ini file | `{option.ini}`{', a list of lines' if option.many else ''} |",
            "",
        ]
    return "\n".join(lines)
