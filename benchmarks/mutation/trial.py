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

from mutation.changes import Change
from mutation.reach import statement_at, watching
from mutation.swap import caches, functions, swapped

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 20
"""A mutant that takes longer than this, in processor time, counts as killed: it does not end."""
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
        self.tests = tests_reaching(tuple(target.tests), str(target.path))
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

    def _met(self, source: str | None, cases: Sequence[Case], tests: Sequence[str], *, anew: bool = False) -> str:
        if source is not None:
            self._load(source, anew)
        said = ""
        for word in (case.run() for case in cases):
            if word and word not in WEAK:
                return word
            said = FINDINGS if FINDINGS in (word, said) else word or said
        if said == FINDINGS:
            return said
        if tests and own_tests(tests):
            return "tests"
        return said or next((word for each in self.target.more() if (word := each())), "")

    def _load(self, source: str, anew: bool) -> None:
        for each in caches():
            each.cache_clear()
        if anew or not swapped(self.target.name, self.source, source):
            self.target.forget()
            forget_tests()
            sys.meta_path.insert(0, Mutated(self.target.name, self.target.path, source))


def in_a_process(met: Callable[[], str]) -> str:
    """What ``met()`` returns in a fork; `NO_END` for one that does not end."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        signal.alarm(10 * SECONDS)  # for one that waits
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
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


class Watch:
    """Which lines of files each test reaches."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        self.reached: dict[str, dict[str, set[int]]] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Watch one test, its fixtures included."""
        with watching(self.files) as self.reached[item.nodeid]:
            yield


class Only:
    """Leaves out all tests but some."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = frozenset(ids)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep those."""
        items[:] = [item for item in items if item.nodeid in self.ids]


@cache
def reached_by_tests(files: tuple[str, ...], room: str) -> dict[str, dict[str, set[int]]]:
    """The lines of the modules in folder ``room`` that each test of ``files`` reaches; afterwards they are imported."""
    watch = Watch([str(file) for file in Path(room).glob("*.py")])
    if not _pytest(files, watch):
        sys.exit(f"unchanged the tests fail: {', '.join(files)}")
    return watch.reached


def tests_reaching(files: tuple[str, ...], path: str) -> dict[str, frozenset[int]]:
    """The lines of the module at ``path`` that each test reaches, by the test's id."""
    if not files:
        return {}
    found = reached_by_tests(files, str(Path(path).parent))
    return {id: frozenset(lines[path]) for id, lines in found.items() if lines[path]}


def own_tests(ids: Sequence[str]) -> bool:
    """Whether one of these tests fails."""
    return not _pytest(sorted({id.partition("::")[0] for id in ids}), Only(ids))


def _pytest(files: Sequence[str], plugin: object) -> bool:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with _silence():
        options = ["-q", "-x", "-p", "no:cacheprovider", "--assert=plain", "--rootdir", str(ROOT)]
        return pytest.main([*options, *(str(ROOT / file) for file in files)], plugins=[plugin]) == 0


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
