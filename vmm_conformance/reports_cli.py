"""The commands on what runs left behind: ``report``, ``badge``, ``merge``, ``diff``, ``bundle`` and ``verify``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vmm_conformance.invocation import BadInvocation

AddCommand = Callable[[Any, str, Callable[[argparse.Namespace], int], str, str], Any]


def add_commands(commands: Any, command: AddCommand) -> None:
    """Add the commands to the command line; ``command`` makes one."""
    for add in (_add_report, _add_badge, _add_merge, _add_diff, _add_bundle, _add_verify):
        add(commands, command)


def _add_report(commands: Any, command: AddCommand) -> None:
    text = "one HTML page of reports and kill matrices; several of one subject are shown over time"
    example = "  vmm-conformance report night-1/report.json night-2/report.json -o nights.html\n"
    parser = command(commands, "report", _report, text, example)
    what = "report.json, its folder, or a kill matrix (mutants --json)"
    parser.add_argument("files", metavar="REPORT", type=Path, nargs="+", help=what)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=Path("report.html"), help="the page")


def _add_badge(commands: Any, command: AddCommand) -> None:
    text = "a badge on a report: an SVG picture, or JSON for an endpoint"
    parser = command(commands, "badge", _badge, text, "  vmm-conformance badge report -o badge.svg\n")
    parser.add_argument("file", metavar="REPORT", type=Path, help="report.json or its folder")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=Path("badge.svg"), help=".svg or .json")


def _add_merge(commands: Any, command: AddCommand) -> None:
    text = "join the reports of shards into that of one run; the exit status is by its verdict"
    parser = command(commands, "merge", _merge, text, "  vmm-conformance merge shard-1 shard-2 -o joined\n")
    parser.add_argument("files", metavar="REPORT", type=Path, nargs="+", help="report.json or its folder")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("joined"),
        help="the report: a file that ends in .json, or a folder for all that a run leaves (default: joined)",
    )  # fmt: skip


def _add_diff(commands: Any, command: AddCommand) -> None:
    text = "tell one report from a later one; the exit status is 1 if anything got worse"
    parser = command(commands, "diff", _diff, text, "  vmm-conformance diff last-night tonight\n")
    parser.add_argument("before", metavar="A", type=Path, help="the earlier report.json or its folder")
    parser.add_argument("after", metavar="B", type=Path, help="the later one")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _add_bundle(commands: Any, command: AddCommand) -> None:
    text = "pack a report with its programs and histories, for others to verify"
    parser = command(commands, "bundle", _bundle, text, "  vmm-conformance bundle report -o mine.vmm.zip\n")
    parser.add_argument("file", metavar="REPORT", type=Path, help="a report's folder, or a kill matrix as JSON")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="the bundle (default: beside the report)")


def _add_verify(commands: Any, command: AddCommand) -> None:
    text = "compute again what a bundle says, and name each difference"
    parser = command(commands, "verify", _verify, text, "  vmm-conformance verify mine.vmm.zip\n")
    parser.add_argument("file", metavar="BUNDLE", type=Path, help="what `vmm-conformance bundle` wrote")
    parser.add_argument(
        "--subject", metavar="SPEC", action="append", default=[],
        help="import and run this subject of the bundle too; may be given more than once",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="do not generate programs again")
    parser.add_argument(
        "--isolation", choices=("none", "process"), default="none",
        help="process: run programs in a child process, also those of a report that was made without (default: none)",
    )  # fmt: skip


def _report(parsed: argparse.Namespace) -> int:
    from vmm_conformance.reporting.html import page

    if not page.available():
        raise BadInvocation(page.MISSING)
    print(page.write(_documents(parsed.files), parsed.output))
    return 0


def _documents(files: list[Path]) -> list[Any]:
    from vmm_conformance.reporting.html.documents import DocumentError, read

    try:
        return [read(file) for file in files]
    except DocumentError as error:
        raise BadInvocation(str(error)) from None


def _reports(files: list[Path]) -> list[Any]:
    """The documents in ``files``, none of which may be a kill matrix."""
    documents = _documents(files)
    for file, document in zip(files, documents, strict=True):
        if document.kills:
            raise BadInvocation(f"{file}: a report is needed, and this is a kill matrix")
    return documents


def _badge(parsed: argparse.Namespace) -> int:
    from vmm_conformance.reporting import badge

    (document,) = _reports([parsed.file])
    badge.save(document.data, parsed.output)
    print(parsed.output)
    return 0


def _merge(parsed: argparse.Namespace) -> int:
    from vmm_conformance.comparing.files import write
    from vmm_conformance.comparing.merge import MergeError, merge
    from vmm_conformance.reporting.html.documents import distinct
    from vmm_conformance.reporting.terminal import summary
    from vmm_conformance.width import terminal_width

    documents = _reports(parsed.files)
    try:
        joined = merge(distinct(documents))
    except MergeError as error:
        raise BadInvocation(str(error)) from None
    file = write(joined, parsed.files, parsed.output)
    print("\n".join(summary(joined.report, directory=str(file.parent), width=terminal_width())))
    for contradiction in joined.contradictions:
        print(contradiction)
    print(f"{file}: {joined.told()}")
    return joined.report.exit_code


def _diff(parsed: argparse.Namespace) -> int:
    from vmm_conformance.comparing.diff import diff
    from vmm_conformance.comparing.told import as_lines
    from vmm_conformance.reporting.html.documents import distinct
    from vmm_conformance.width import terminal_width

    before, after = distinct(_reports([parsed.before, parsed.after]))
    made = diff(before, after)
    print(json.dumps(made.as_data(), indent=2) if parsed.json else "\n".join(as_lines(made, terminal_width())))
    return int(made.worse)


def _bundle(parsed: argparse.Namespace) -> int:
    from vmm_conformance.bundling.archive import BundleError
    from vmm_conformance.bundling.pack import default_target, pack

    try:
        print(pack(parsed.file, parsed.output or default_target(parsed.file)))
    except BundleError as error:
        raise BadInvocation(str(error)) from None
    return 0


def _verify(parsed: argparse.Namespace) -> int:
    from vmm_conformance.bundling.archive import BundleError
    from vmm_conformance.bundling.result import conclusion, exit_code
    from vmm_conformance.bundling.verify import verify
    from vmm_conformance.reporting.progress import Progress
    from vmm_conformance.running.session import end_children

    pieces, isolated = [], parsed.isolation == "process"
    with Progress(sys.stderr) as progress:
        try:
            for piece in verify(
                parsed.file, trusted=parsed.subject, quick=parsed.quick, isolated=isolated, progress=progress.programs
            ):
                pieces.append(piece)
                progress.line(piece.line(), sys.stdout)
        except BundleError as error:
            raise BadInvocation(str(error)) from None
        finally:
            end_children()
    print(f"{parsed.file}: {conclusion(pieces)}")
    return exit_code(pieces)
