"""The site: every page is in it, the generated ones say everything, and it builds where mkdocs is."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
import sys

import pytest
from told_pages import DOCS, GENERATED, ROOT

from vmm_conformance import contracts
from vmm_conformance.cli import main
from vmm_conformance.invocation import OPTIONS
from vmm_conformance.programs.schema import program_schema

NAV = set(re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))


def test_every_page_is_in_the_navigation():
    written = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    generated = {name for name in GENERATED if name.endswith(".md")}
    assert written | generated == NAV
    assert not written & generated


def test_every_command_is_there_with_its_help(capsys):
    page = GENERATED["reference/commands.md"]
    with pytest.raises(SystemExit):
        main(["--help"])
    named = set(re.findall(r"vmm-conformance ([a-z]+) ", capsys.readouterr().out))
    headings = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert named <= set(headings)
    assert len(headings) == len(set(headings)) >= 10
    assert all(f"usage: vmm-conformance {name} " in page for name in headings)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_there_in_all_forms(option):
    page = GENERATED["reference/options.md"]
    for form in (f"--vmm-{option.name}", f"`--{option.name}", f"`{option.environment}`", f"`{option.ini}`"):
        assert form in page


def test_every_protocol_and_value_of_the_contracts_is_there():
    headings = set(re.findall(r"^### (\w+)$", GENERATED["reference/contracts.md"], re.MULTILINE))
    public = {name for name, value in vars(contracts).items() if inspect.isclass(value)}
    assert public <= headings
    assert "ForwardRef" not in GENERATED["reference/contracts.md"]


def test_every_operation_and_every_configuration_has_its_table():
    page = GENERATED["reference/programs.md"]
    for name, definition in program_schema()["$defs"].items():
        if "op" in definition.get("properties", {}):
            assert f"| `op` | `{definition['properties']['op']['const']}` | |" in page, name
    assert page.count("### Configuration") == 8


def test_every_field_of_a_report_is_there():
    page = GENERATED["reference/reports.md"]
    for file in ("report", "kills", "waivers", "diff"):
        schema = json.loads(GENERATED[f"reference/{file}.schema.json"])
        for part in (schema, *schema["$defs"].values()):
            for name in part.get("properties", {}):
                assert f"`{name}`" in page


def test_it_builds_strictly(tmp_path):
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("needs mkdocs-material: pip install -e '.[docs]'; `make docs` builds it as well")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    home = (tmp_path / "index.html").read_text("utf-8")
    fetched = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//[^"]+"', home)
    assert fetched == [], "the site must be readable without a network"
