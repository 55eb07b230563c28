"""Writes a joined report, with the programs and histories that lie beside the reports it was made of."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from vmm_conformance.bundling.pack import history_of
from vmm_conformance.comparing.merge import Joined
from vmm_conformance.reporting import badge, json_report, junit
from vmm_conformance.reporting.html import page
from vmm_conformance.reporting.html.documents import Document


def write(joined: Joined, sources: Sequence[Path], target: Path) -> Path:
    """Write the report to ``target``: a file that ends in ``.json``, or a folder that is filled as by a run.

    ``sources`` are the reports it was made of, files or folders. Returns the path of the report.
    """
    file = target if target.suffix == ".json" else target / json_report.FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    for name, number in joined.evidence.items():
        for each in (name, history_of(name)):
            _copy(_folder(sources[number]) / each, file.parent / each)
    file.write_text(json.dumps(joined.data, indent=2) + "\n", "utf-8")
    if file != target:
        junit.write(joined.report, target)
        for name in (badge.JSON_FILE, badge.SVG_FILE):
            badge.save(joined.data, target / name)
        if page.available():
            page.write([Document(target.absolute().name, joined.data)], target / page.FILE)
    return file


def _folder(source: Path) -> Path:
    return source if source.is_dir() else source.parent


def _copy(source: Path, target: Path) -> None:
    """Copy what is there; a report may be archived without its evidence."""
    if source.is_file() and source.resolve() != target.resolve():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
