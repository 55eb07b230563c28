"""What a user asks a run for: the same names on both command lines, in the environment and in ini files.

Light on purpose: every pytest run of a user loads this module, so it imports nothing heavy.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from vmm_conformance.programs.program import Program
    from vmm_conformance.running.session import Options
    from vmm_conformance.waivers.listed import Waivers


class BadInvocation(ValueError):
    """What was asked for does not exist; the message is one line that says what is accepted."""


class Option(NamedTuple):
    """One option. ``metavar`` is empty for a switch; ``many`` may be given more than once."""

    name: str
    metavar: str
    help: str
    many: bool = False

    @property
    def environment(self) -> str:
        """Its environment variable."""
        return f"VMM_{self.name.upper()}"

    @property
    def ini(self) -> str:
        """Its key in an ini file."""
        return f"vmm_{self.name}"

    def arguments(self) -> dict[str, Any]:
        """What ``add_argument`` takes; a missing option reads None, so that others can fill it in."""
        if not self.metavar:
            return {"action": "store_true", "default": None, "help": self.help}
        action = "append" if self.many else "store"
        return {"action": action, "default": None, "metavar": self.metavar, "help": self.help}


OPTIONS: Final = (
    Option(
        "subject",
        "SPEC",
        "what to test: an installed name or module:attribute, either with ,key=value parameters, or proc:COMMAND, a"
        " program that talks JSON Lines (proc,emulate=cuda:COMMAND on an emulated library); may be given more than"
        " once (default: reference)",
        many=True,
    ),
    Option(
        "driver",
        "NAME",
        "what subjects allocate from: host, hip, cuda, emulated-hip or emulated-cuda; all but hip and cuda take"
        " ,quirk=ID, all but host ,memory=SIZE, and the emulated ones ,devices=NUMBER; or own: what a process that is"
        " a subject has itself (default: host)",
    ),
    Option(
        "budget",
        "NAME",
        "smoke, dev, ci or nightly: 50, 500, 2,000 or 100,000 programs per contract (default: ci)",
    ),
    Option("seed", "NUMBER", "starts the generation; equal seeds give equal programs (default: 0)"),
    Option("invariant", "PREFIX", "judge only ids that begin so, as in STEP or STEP-87; makes the run partial"),
    Option(
        "shard",
        "K/N",
        "run the K-th of N parts of the suites, as in 1/2, and leave the others to other machines; makes the run"
        " partial, and vmm-conformance merge joins the reports (default: all)",
    ),
    Option("report", "DIR", "write report.json, report.html, conformance.xml, badges, programs and histories there"),
    Option("replay", "FILE", "run this one program in place of the suites"),
    Option(
        "waivers",
        "FILE",
        "a TOML file of failures that are expected for a while; one that passes, fails differently, was not run, has"
        " expired or matches nothing fails the run (default: none)",
    ),
    Option("today", "DATE", "the day that the expiry of waivers is compared with, as in 2027-06-30 (default: today)"),
    Option("hardened", "", "let a broken inferred must fail the run too"),
    Option(
        "database",
        "PLACE",
        "remember what programs that fail are made of, and try that first: a folder, or redis://HOST:PORT/NUMBER for"
        " machines that share one",
    ),
    Option(
        "isolation",
        "NAME",
        "none, or process: run programs in a child process; one that crashes, exits, is killed or hangs is a verdict"
        " with its program, and the rest goes on in a fresh child (default: none)",
    ),
    Option(
        "timeout",
        "SECONDS",
        "under process isolation, how long an operation may take until its process is ended; of a subject that is a"
        " process, how long a line of it may take (default: 60)",
    ),
)


@dataclass(frozen=True, slots=True)
class Invocation:
    """What was asked for, with defaults for the rest; not yet checked against what exists."""

    subjects: tuple[str, ...] = ("reference",)
    driver: str = "host"
    budget: str = "ci"
    seed: int = 0
    invariant: str = ""
    shard: str = ""
    report: Path | None = None
    replay: Path | None = None
    waivers: Path | None = None
    today: date | None = None
    hardened: bool = False
    database: str = ""
    isolation: str = "none"
    timeout: int = 60

    def options(self) -> Options:
        """The options of a session."""
        from vmm_conformance.running.session import Options

        return Options(
            budget=self.budget,
            seed=self.seed,
            driver=self.driver,
            prefix=self.invariant,
            database=self.database,
            hardened=self.hardened,
            isolation=self.isolation,
            timeout=self.timeout,
            shard=self.shard,
        )

    def subject_objects(self) -> dict[str, object]:
        """Each subject's object by its spec. Raises `BadInvocation` for one that cannot be had."""
        from vmm_conformance.running.session import resolve_known
        from vmm_conformance.running.subjects import SubjectNotFound

        try:
            return {spec: resolve_known(spec) for spec in self.subjects}
        except SubjectNotFound as error:
            raise BadInvocation(str(error)) from None

    def waiver_objects(self) -> Waivers | None:
        """What is in the file of waivers, None without one. Raises `BadInvocation` for one that cannot be used."""
        if self.waivers is None:
            return None
        from vmm_conformance.waivers.files import WaiverError, load
        from vmm_conformance.waivers.listed import Waivers

        try:
            entries = load(self.waivers)
        except WaiverError as error:
            raise BadInvocation(str(error)) from None
        ending = next((waiver for waiver in entries if waiver.kind != "failure"), None)
        apart = all(spec.startswith(("proc:", "proc,")) for spec in self.subjects)
        outlived = self.isolation == "process" or self.replay or apart
        if ending is not None and not outlived:
            raise BadInvocation(
                f"{self.waivers}: a {ending.kind} is waived ({ending.invariant}), and would end the run; let programs"
                " run in a child, with --vmm-isolation process, or run --isolation process"
            )
        return Waivers(entries, self.today or datetime.now(UTC).date())

    def check(self) -> None:
        """Raise `BadInvocation` unless everything that was asked for exists and can be used."""
        self.check_names()
        self.subject_objects()
        self.waiver_objects()
        if self.replay:
            read_program(self.replay)

    def check_names(self) -> None:
        """The same for names alone, without subjects and without reading files."""
        from vmm_conformance.catalogue import catalogue
        from vmm_conformance.drivers.opening import parse
        from vmm_conformance.running.session import BUDGETS, ISOLATIONS
        from vmm_conformance.running.shards import members

        _one_of("budget", self.budget, BUDGETS)
        _one_of("isolation", self.isolation, ISOLATIONS)
        if self.timeout < 1:
            raise BadInvocation(f"timeout must be at least 1 second, got {self.timeout}")
        try:
            parse(self.driver)
            members((), self.shard)
        except ValueError as error:
            raise BadInvocation(str(error)) from None
        if self.invariant and not catalogue().matching(self.invariant):
            areas = sorted({entry.order[0] for entry in catalogue()})
            raise BadInvocation(f"no invariant begins with {self.invariant!r}; areas are {', '.join(areas)}")
        if self.replay and not self.replay.is_file():
            raise BadInvocation(f"no program file {str(self.replay)!r}; give the path of a JSON file")
        if self.database:
            _reach(self.database)


def gather(
    command_line: Mapping[str, Any], environment: Mapping[str, str], ini: Mapping[str, Any] | None = None
) -> tuple[Invocation, bool]:
    """What was asked for, and whether any of it outside an ini file.

    Each maps names to what was given there (``environment`` by variable, the others by option name,
    None or empty where nothing was); the command line wins over the environment, that over the ini
    file. Raises `BadInvocation` for text that cannot be read.
    """
    given: dict[str, Any] = {}
    here = False
    for option in OPTIONS:
        sources = (
            command_line.get(option.name),
            environment.get(option.environment),
            (ini or {}).get(option.name),
        )
        where = next((index for index, value in enumerate(sources) if value not in (None, "", [])), None)
        if where is not None:
            here = here or where < 2
            given[option.name] = _read(option, sources[where])
    if "subject" in given:
        given["subjects"] = given.pop("subject")
    return Invocation(**given), here


def _read(option: Option, value: Any) -> Any:
    if option.many:
        return _words(option, value) if isinstance(value, str) else tuple(value)
    if not option.metavar:
        return _switch(option, value)
    if option.name in ("seed", "timeout"):
        return _whole(option, str(value))
    if option.name == "today":
        return _day(str(value))
    return Path(value) if option.name in ("report", "replay", "waivers") else str(value)


def _words(option: Option, value: str) -> tuple[str, ...]:
    """Several values in one text, apart by spaces; one with spaces is quoted, as in a shell."""
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        raise BadInvocation(f"{option.name} cannot be split into words: {error}, in {value!r}") from None


def _switch(option: Option, value: Any) -> bool:
    word = str(value).lower()
    if word in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        return word in ("1", "true", "yes", "on")
    raise BadInvocation(f"{option.name} is a switch: 1 or 0, true or false, got {value!r}")


def _whole(option: Option, value: str) -> int:
    if not value.strip().isdecimal():
        raise BadInvocation(f"{option.name} must be a whole number from 0 up, got {value!r}")
    return int(value)


def _reach(database: str) -> None:
    from vmm_conformance.running.remembered import DatabaseUnavailable, open_database

    try:
        open_database(database)
    except DatabaseUnavailable as error:
        raise BadInvocation(str(error)) from None


def _day(value: str) -> date:
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise BadInvocation(f"today must be a day as in 2027-06-30, got {value!r}") from None


def read_program(path: Path) -> Program:
    """The program in ``path``. Raises `BadInvocation` with the position of what is wrong in it."""
    from vmm_conformance.programs.codec import ProgramError
    from vmm_conformance.programs.files import load

    try:
        return load(path)
    except (ProgramError, OSError) as error:
        raise BadInvocation(str(error)) from None


def make_importable(folder: Path) -> None:
    """Let ``module:attribute`` name a module in ``folder``, behind everything that is installed."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _one_of(what: str, value: str, accepted: Sequence[str] | Mapping[str, Any]) -> None:
    if value not in accepted:
        raise BadInvocation(f"unknown {what} {value!r}; accepted: {', '.join(accepted)}")
