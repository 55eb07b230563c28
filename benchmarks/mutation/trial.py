"""The trial of one mutant: a fork of the warm process that runs it, and says what found it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

import pytest
from _pytest.config import _prepareconfig
from _pytest.runner import runtestprotocol

from mutation.changes import Change
from mutation.reach import statement_at, watching
from mutation.swap import caches, functions, swapped

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 20
"""A mutant that takes longer than this, in processor time, counts as killed: it does not end."""
BYTES: Final = 2 << 30
"""One that wants more memory than this gets an error. What a host driver reserves is not counted."""
NO_END: Final = "no end"
FINDINGS, COUNTS = "findings", "counts"
WEAK: Final = (FINDINGS, COUNTS)
"""What may be noticed while the verdict stays: something else is found besides, or is put to the test more often."""


@dataclass(slots=True)
class Outcome:
    """One mutant: where, what was changed, and what found it (empty: nothing)."""

    module: str
    operator: str
    line: int
    change: str
    killed_by: str = ""


def survived(outcome: Outcome) -> bool:
    """Whether nothing noticed a mutant, or nothing but a number of witnesses changed."""
    return outcome.killed_by in ("", COUNTS)


class Case(NamedTuple):
    """Something a mutant meets, which returns a word for what is wrong, or nothing; and the lines it reaches."""

    run: Callable[[], str]
    lines: frozenset[int]


class Target(Protocol):
    """One module that is changed, and what its mutants have to live through."""

    @property
    def path(self) -> Path:
        """The module's file."""
        ...

    @property
    def name(self) -> str:
        """The module's full name."""
        ...

    @property
    def tests(self) -> Sequence[str]:
        """Files of the tests of its own."""
        ...

    def forget(self) -> None:
        """Let go of modules that have to be loaded anew; called in the fork."""
        ...

    def cases(self) -> Sequence[Case]:
        """What a mutant meets before the tests, cheap ones first."""
        ...

    def more(self) -> Iterator[Callable[[], str]]:
        """What survives the tests meets these."""
        ...


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module out of a text in place of its file."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, path, source

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The module that is in the text."""
        return importlib.machinery.ModuleSpec(name, self) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the text."""
        exec(compile(self.source, str(self.path), "exec", dont_inherit=True), module.__dict__)


class Trials:
    """All trials of one module; what they have in common is made once, here."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.source = target.path.read_text("utf-8")
        importlib.import_module(target.name)
        self.cases = target.cases()
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        self.tests = tests_in(tuple(target.tests), target.path.parent).reaching(target.path)
        functions(str(target.path)), caches()

    def of(self, change: Change | None) -> str:
        """What finds ``change``, or the module as it is: the first killer's name, or nothing."""
        if change is None:
            return in_a_process(lambda: self._met(None, self.cases, list(self.tests)))
        lines = statement_at(self.source, change.line)
        cases = [case for case in self.cases if lines is None or case.lines & lines]
        tests = [test for test, reached in self.tests.items() if lines is None or reached & lines]
        if not cases and not tests:
            lines, cases, tests = None, list(self.cases), list(self.tests)  # only an import comes by
        return in_a_process(lambda: self._met(change.source, cases, tests, anew=lines is None))

    def _met(
        self, source: str | None, cases: Sequence[Case], tests: Sequence[pytest.Item], *, anew: bool = False
    ) -> str:
        if source is not None:
            anew = self._load(source, anew)
        said = ""
        for word in (case.run() for case in cases):
            if word and word not in WEAK:
                return word
            said = FINDINGS if FINDINGS in (word, said) else word or said
        if said == FINDINGS:
            return said
        if tests and one_fails(tests, anew=anew):
            return "tests"
        return said or next((word for each in self.target.more() if (word := each())), "")

    def _load(self, source: str, anew: bool) -> bool:
        """Put the mutant in place, or have everything that imports it loaded ``anew``. Returns whether that is so."""
        for each in caches():
            each.cache_clear()
        if not anew and swapped(self.target.name, self.source, source):
            return False
        self.target.forget()
        forget_tests()
        sys.meta_path.insert(0, Mutated(self.target.name, self.target.path, source))
        return True


def in_a_process(met: Callable[[], str]) -> str:
    """What ``met()`` returns in a fork; `NO_END` for one that does not end."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        signal.alarm(10 * SECONDS)  # for one that waits
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
        try:
            word = met()
        except BaseException as error:
            word = f"{type(error).__name__} at import or construction"
        os.write(send, word.encode() or b"-")
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        word = pipe.read().decode()
    os.waitpid(child, 0)
    return NO_END if not word else word.removeprefix("-")


def forget(*prefixes: str) -> None:
    """Drop modules that begin so, so that whoever needs them loads them anew."""
    _drop([name for name in sys.modules if name.startswith(prefixes)])


def forget_tests() -> None:
    """Drop the tests, which hold on to what they have imported."""
    folder = str(ROOT / "tests")
    _drop([name for name, module in sys.modules.items() if (getattr(module, "__file__", "") or "").startswith(folder)])


def _drop(names: Sequence[str]) -> None:
    for name in names:
        package, _, last = name.rpartition(".")
        vars(sys.modules[package]).pop(last, None) if package in sys.modules else None
        del sys.modules[name]


class Tests:
    """The tests in ``files``, collected once; the lines of the modules in ``room`` that each reaches."""

    def __init__(self, files: Sequence[str], room: Path) -> None:
        self.files = files
        with _silence():
            config = _prepareconfig([*_OPTIONS, *(str(ROOT / file) for file in files)])
            config._do_configure()
            self.session = pytest.Session.from_config(config)
            config.hook.pytest_sessionstart(session=self.session)
            config.hook.pytest_collection(session=self.session)
            self.reached = {item: self._watched(item, room) for item in self.session.items}

    def _watched(self, item: pytest.Item, room: Path) -> dict[str, set[int]]:
        with watching(map(str, room.glob("*.py"))) as reached:
            if _fails(item, None):
                sys.exit(f"unchanged it fails: {item.nodeid}")
        return reached

    def reaching(self, path: Path) -> dict[pytest.Item, frozenset[int]]:
        """The lines of the module at ``path`` that each test reaches."""
        return {item: frozenset(lines[str(path)]) for item, lines in self.reached.items() if lines[str(path)]}


@cache
def tests_in(files: tuple[str, ...], room: Path) -> Tests:
    """The same tests for all modules of a folder."""
    return Tests(files, room)


_OPTIONS: Final = ("-q", "-x", "-p", "no:cacheprovider", "--assert=plain", "--rootdir", str(ROOT))


def one_fails(items: Sequence[pytest.Item], *, anew: bool) -> bool:
    """Whether one of these tests fails; ``anew``: what they have imported is not what they are to try."""
    with _silence():
        if anew:
            return pytest.main([*_OPTIONS, *sorted({str(item.path) for item in items})]) != 0
        return any(_fails(item, after) for item, after in zip(items, [*items[1:], None], strict=True))


def _fails(item: pytest.Item, after: pytest.Item | None) -> bool:
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=after))


@contextmanager
def _silence() -> Iterator[None]:
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
