"""The arguments of ``vmm-conformance run`` that run a command, watched, in place of the suites."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from vmm_conformance.invocation import OPTIONS, BadInvocation

_OF_SUITES: Final = ("contract", *(option.name for option in OPTIONS if option.name != "report"))
EXAMPLE = "  vmm-conformance run --emulate cuda -- program.py\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them; light, so that every command line may do so."""
    what = "in place of the suites: run COMMAND, a Python program, on the emulated library, and judge what it did"
    parser.add_argument("--emulate", metavar="VENDOR", choices=("cuda", "hip"), help=f"{what} (cuda or hip)")
    parser.add_argument(
        "--record", metavar="VENDOR", choices=("cuda", "hip"),
        help="the same on the vendor's real library: each call goes on to it, and what is asked of memory is recorded",
    )  # fmt: skip
    parser.add_argument(
        "--library", metavar="PATH", default="",
        help="with --record: the library, or the word emulated (default: the one that the system finds)",
    )  # fmt: skip
    parser.add_argument("--quirk", metavar="ID", default="", help="with --emulate: let the library deviate (Q-01+Q-07)")
    parser.add_argument("words", metavar="-- COMMAND", nargs="*", help="the command and its arguments")


def asked(parsed: argparse.Namespace) -> bool:
    """Whether a command is to be run, or something was given that only makes sense with one."""
    return bool(parsed.emulate or parsed.record or parsed.library or parsed.words or parsed.quirk)


def run(parsed: argparse.Namespace) -> int:
    """Run the command watched; returns its exit status, 1 if it did anything wrong, 3 if nothing was watched."""
    from vmm_conformance.drivers.emulated import EmulationUnavailable
    from vmm_conformance.drivers.emulated.forwarding import real_library
    from vmm_conformance.drivers.opening import parse
    from vmm_conformance.running.watching import EMULATED
    from vmm_conformance.sanitizing import command

    if bool(parsed.emulate) == bool(parsed.record) or not parsed.words:
        raise BadInvocation(
            "a command and one of --emulate and --record go together, as in: run --emulate cuda -- program.py"
        )
    if (parsed.record and parsed.quirk) or (parsed.emulate and parsed.library):
        raise BadInvocation("--quirk goes with --emulate, and --library with --record")
    if others := [name for name in _OF_SUITES if getattr(parsed, name, None) is not None]:
        raise BadInvocation(f"--{others[0]} is for the suites, and a command runs in place of them; leave it out")
    if parsed.library not in ("", EMULATED) and not Path(parsed.library).is_file():
        raise BadInvocation(f"--library {parsed.library}: there is no such file; name the vendor's library by its path")
    report = Path(parsed.report) if parsed.report else None
    try:
        if parsed.record:
            library = parsed.library or str(real_library(parsed.record))
            library = library if library == EMULATED else os.path.abspath(library)
            return command.run(parsed.record, parsed.words, forward=library, report=report)
        parse(f"emulated-{parsed.emulate}" + (f",quirk={parsed.quirk}" if parsed.quirk else ""))
        return command.run(parsed.emulate, parsed.words, quirks=parsed.quirk, report=report)
    except (EmulationUnavailable, ValueError) as error:
        raise BadInvocation(str(error)) from None
    except FileNotFoundError as error:
        raise BadInvocation(f"the command cannot be run: {error}") from None
