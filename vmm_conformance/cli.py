"""The command ``vmm-conformance``.

Exit status: 0 conformant (or nothing to complain about), 1 not, 2 usage, 3 partial or unknown.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from vmm_conformance import judging
from vmm_conformance.drivers.calls import DriverUnavailable
from vmm_conformance.invocation import OPTIONS, BadInvocation, gather, make_importable
from vmm_conformance.reports_cli import add_commands
from vmm_conformance.sanitizing import cli as sanitizer

USAGE_ERROR: Final = 2
NOT_SHOWN: Final = 3
Action = Callable[[argparse.Namespace], int]
_Format = argparse.RawDescriptionHelpFormatter

_EXAMPLES = """\
examples:
  vmm-conformance list STEP                  the invariants of one area
  vmm-conformance explain STEP-87            what one means, and what tests it
  vmm-conformance run --budget smoke         the reference, briefly
  vmm-conformance run --subject my_package.vmm:pool --report report
  vmm-conformance run --emulate cuda -- program.py   a program on an emulated library, watched for leaks
  vmm-conformance replay report/programs/STEP-87-reference.json
  vmm-conformance mutants --contract flags   which known-bad variants are caught
  vmm-conformance points --contract allocator    each driver call fails once, and once more inside the undo
  vmm-conformance probe                      what a driver can do, and what that costs
  vmm-conformance judge trace.jsonl          what is wrong in a history that another program wrote
  vmm-conformance report report -o page.html one page to look at
  vmm-conformance merge shard-1 shard-2 -o joined    the reports of shards as that of one run
  vmm-conformance diff last-night tonight    what changed, what got worse first
  vmm-conformance bundle report              the report with what proves it; `verify` computes it again

exit status: 0 conformant, 1 not conformant, 2 usage, 3 partial or unknown
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parsed = _parser().parse_args(arguments)
    make_importable(Path.cwd())
    command: Action = parsed.command
    try:
        return command(parsed)
    except BadInvocation as error:
        print(f"vmm-conformance {parsed.name}: {error}", file=sys.stderr)
        return USAGE_ERROR
    except DriverUnavailable as error:
        print(f"vmm-conformance {parsed.name}: {error}", file=sys.stderr)
        return NOT_SHOWN
    except KeyboardInterrupt:  # in a command that has no report to write
        print(f"vmm-conformance {parsed.name}: interrupted; what was printed holds, no more was done", file=sys.stderr)
        return NOT_SHOWN
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vmm-conformance", epilog=_EXAMPLES, formatter_class=_Format)
    parser.description = "Conformance of GPU virtual-memory allocators: run the suites, read the invariants."
    parser.add_argument("--version", action="version", version=f"vmm-conformance {_version()}")
    commands = parser.add_subparsers(dest="name", metavar="COMMAND", required=True)
    for add in (_add_list, _add_explain, _add_run, _add_replay, _add_mutants, _add_points, _add_probe):
        add(commands)
    judging.add_command(commands, _command)
    add_commands(commands, _command)
    return parser


def _version() -> str:
    from vmm_conformance import __version__

    return __version__


def _command(commands: Any, name: str, action: Action, help: str, example: str) -> Any:
    epilog = f"example:\n{example}"
    parser = commands.add_parser(name, epilog=epilog, formatter_class=_Format, help=help, description=help)
    parser.set_defaults(command=action)
    return parser


def _add_list(commands: Any) -> None:
    text = "list the invariants, with the scenarios, checkers and mutants of each"
    parser = _command(commands, "list", _list, text, "  vmm-conformance list STEP --json\n")
    parser.add_argument("prefix", nargs="?", default="", metavar="PREFIX", help="only ids that begin so")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--markdown", action="store_true", help="all of them as a page")


def _add_explain(commands: Any) -> None:
    text = "explain one invariant: what must hold, why, and what tests it"
    parser = _command(commands, "explain", _explain, text, "  vmm-conformance explain STEP-87\n")
    parser.add_argument("id", metavar="ID", help="an invariant's id")


def _add_run(commands: Any) -> None:
    text = "run the suites on one or more subjects"
    example = "  vmm-conformance run --subject reference --budget smoke --seed 7 --report report\n" + sanitizer.EXAMPLE
    parser = _command(commands, "run", _run, text, example)
    for option in OPTIONS:
        if option.name != "replay":
            parser.add_argument(f"--{option.name}", **option.arguments())
    help = "only this one's suite; may be given more than once; makes the run partial if the subject offers others"
    parser.add_argument("--contract", metavar="NAME", action="append", help=help)
    sanitizer.add_arguments(parser)


def _add_replay(commands: Any) -> None:
    text = "run one program and print what its checkers find"
    example = "  vmm-conformance replay report/programs/STEP-87-reference.json --subject reference\n"
    parser = _command(commands, "replay", _replay, text, example)
    parser.add_argument("file", metavar="FILE", type=Path, help="a program as JSON")
    for option in OPTIONS:
        if option.name in ("subject", "driver", "isolation", "timeout"):
            parser.add_argument(f"--{option.name}", **option.arguments())


def _add_mutants(commands: Any) -> None:
    text = "run the known-bad variants and print which invariant catches each"
    example = "  vmm-conformance mutants --contract flags --seed 0 1 2\n  vmm-conformance mutants --only upstream\n"
    parser = _command(commands, "mutants", _mutants, text, example)
    parser.add_argument("--contract", metavar="NAME", help="only those of one contract")
    parser.add_argument("--seed", metavar="N", type=int, nargs="+", default=[0], help="seeds (default: 0)")
    parser.add_argument("--budget", metavar="NAME", default="ci", help="programs per mutant (default: ci)")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="processes that share the work (default: 1)")
    for option in OPTIONS:
        if option.name in ("isolation", "timeout"):
            parser.add_argument(f"--{option.name}", **option.arguments())
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    text = "how many the scenarios catch alone that retell upstream's own tests, beside the full suites"
    form.add_argument("--only", choices=("upstream",), help=text)


def _add_points(commands: Any) -> None:
    text = "let each call fail that programs reach, once going forward and once inside the undo"
    example = "  vmm-conformance points --subject reference --contract allocator --bound 5000\n"
    parser = _command(commands, "points", _points, text, example)
    for option in OPTIONS:
        if option.name in ("subject", "driver", "seed", "report", "isolation", "timeout"):
            parser.add_argument(f"--{option.name}", **option.arguments())
    parser.add_argument("--contract", metavar="NAME", help="only that of one contract (default: all that are offered)")
    parser.add_argument("--bound", metavar="N", type=int, default=5000, help="points of a contract (default: 5000)")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each contract")


def _add_probe(commands: Any) -> None:
    text = "try a driver's capabilities, and measure what remaps and copies cost on it"
    parser = _command(commands, "probe", _probe, text, "  vmm-conformance probe --driver host --json\n")
    for option in OPTIONS:
        if option.name == "driver":
            parser.add_argument(f"--{option.name}", **option.arguments())
    help = "also ask what it answers where documents name no code, each time in a process of its own"
    parser.add_argument("--refusals", action="store_true", help=help)
    parser.add_argument("--json", action="store_true", help="as JSON")


def _list(parsed: argparse.Namespace) -> int:
    from vmm_conformance.document import as_markdown
    from vmm_conformance.listing import as_data, as_lines
    from vmm_conformance.width import terminal_width

    if parsed.markdown:
        print("\n".join(as_markdown()))
        return 0
    lines = [] if parsed.json else as_lines(parsed.prefix, terminal_width())
    print(json.dumps(as_data(parsed.prefix), indent=2) if parsed.json else "\n".join(lines))
    return 0


def _explain(parsed: argparse.Namespace) -> int:
    from vmm_conformance.listing import explain
    from vmm_conformance.width import terminal_width

    print("\n".join(explain(parsed.id, terminal_width())))
    return 0


def _run(parsed: argparse.Namespace) -> int:
    if sanitizer.asked(parsed):
        return sanitizer.run(parsed)
    from vmm_conformance.commands import run

    return run(gather(vars(parsed), os.environ)[0], parsed.contract)


def _replay(parsed: argparse.Namespace) -> int:
    from vmm_conformance.commands import replay

    return replay(gather({**vars(parsed), "replay": parsed.file}, os.environ)[0])


def _mutants(parsed: argparse.Namespace) -> int:
    from vmm_conformance.commands import mutants, mutants_beside

    if parsed.only:
        return mutants_beside(parsed.contract, parsed.seed, parsed.budget, parsed.only, jobs=parsed.jobs)
    asked = gather({"isolation": parsed.isolation, "timeout": parsed.timeout}, os.environ)[0]
    asked.check_names()
    options = asked.options()
    return mutants(parsed.contract, parsed.seed, parsed.budget, jobs=parsed.jobs, as_json=parsed.json, options=options)


def _points(parsed: argparse.Namespace) -> int:
    from vmm_conformance.points_command import points

    invocation = gather(vars(parsed), os.environ)[0]
    return points(invocation, parsed.contract, parsed.bound, invocation.report, as_json=parsed.json)


def _probe(parsed: argparse.Namespace) -> int:
    from vmm_conformance.commands import probe

    return probe(gather({"driver": parsed.driver}, os.environ)[0], refusals=parsed.refusals, as_json=parsed.json)


if __name__ == "__main__":
    sys.exit(main())
