"""Who may import whom (docs/architecture.md), read from the sources."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "vmm_conformance": ROOT / "vmm_conformance",
    "vmm_reference": ROOT / "reference" / "vmm_reference",
    "vmm_suites": ROOT / "suites" / "vmm_suites",
}
OURS = tuple(FOLDERS)

ALLOWED = {
    "vmm_conformance.contracts": ["vmm_conformance.contracts"],
    "vmm_conformance.history": ["vmm_conformance.history", "vmm_conformance.contracts"],
    "vmm_conformance.catalogue": ["vmm_conformance.catalogue"],
    "vmm_conformance.checkers": [
        "vmm_conformance.checkers",
        "vmm_conformance.history",
        "vmm_conformance.catalogue",
        "vmm_conformance.contracts",
    ],
    "vmm_conformance.programs": ["vmm_conformance.programs", "vmm_conformance.contracts"],
    "vmm_conformance.drivers": ["vmm_conformance.drivers", "vmm_conformance.contracts"],
    "vmm_conformance": ["vmm_conformance"],
    "vmm_reference": ["vmm_reference", "vmm_conformance.contracts"],
    "vmm_suites": ["vmm_suites", "vmm_conformance"],
}
"""A package, and those of ours that it may import from. What is not listed here is not allowed."""


def module_name(file: Path, package: str) -> str:
    """The dotted name of ``file`` in the folder of ``package``."""
    parts = (package, *file.relative_to(FOLDERS[package]).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def within(name: str, package: str) -> bool:
    """Whether the module ``name`` is ``package`` or lies in it."""
    return name == package or name.startswith(f"{package}.")


def imports_of(file: Path) -> set[str]:
    """Modules of ours that ``file`` imports, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: write relative imports out"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.partition(".")[0] in OURS}


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_only_what_it_may(package):
    top = package.partition(".")[0]
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in sorted(FOLDERS[top].rglob("*.py"))
        if within(module_name(file, top), package)
        for name in sorted(imports_of(file))
        if not any(within(name, allowed) for allowed in ALLOWED[package])
    ]
    assert not wrong, "\n".join(wrong)


BACK = {
    ("vmm_conformance.running.scope_run", "vmm_conformance.running.va_remap"),
    ("vmm_reference.vmm_records", "vmm_reference.timeline"),
}
"""Imports for types alone that close a circle: each of the two is about the other."""


def test_no_other_modules_import_each_other():
    """Also not by way of others, inside a function, or for types."""
    modules = {module_name(file, top): file for top, folder in FOLDERS.items() for file in folder.rglob("*.py")}
    heads = {
        name: {found if found in modules else found.rpartition(".")[0] for found in imports_of(file)} - {name}
        for name, file in modules.items()
    }
    assert all(back in heads[name] for name, back in BACK)
    TopologicalSorter({name: {to for to in found if (name, to) not in BACK} for name, found in heads.items()}).prepare()


def test_suites_hold_no_logic_of_their_own():
    """Pairings and scenarios are data: nothing there imports a checker, a driver or a subject."""
    for file in FOLDERS["vmm_suites"].rglob("*.py"):
        for name in imports_of(file):
            assert not any(within(name, f"vmm_conformance.{room}") for room in ("checkers", "drivers")), (file, name)


def test_no_checker_names_an_implementation():
    """Differences between implementations are capabilities; a checker that knows a name has one built in."""
    for file in FOLDERS["vmm_conformance"].joinpath("checkers").glob("*.py"):
        text = file.read_text("utf-8").lower().replace("xla_vmm_", "")  # names of environment variables
        assert not [name for name in ("xla", "pytorch", "cuda.core") if name in text], file
