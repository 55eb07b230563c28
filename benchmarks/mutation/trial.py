"""The trial of one mutant: a fork that loads it in place of the module, and says what found it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 20
"""A mutant that takes longer than this, in processor time, counts as killed: it does not end."""
NO_END: Final = "no end"


@dataclass(slots=True)
class Outcome:
    """One mutant: where, what was changed, and what found it (empty: nothing)."""

    module: str
    operator: str
    line: int
    change: str
    killed_by: str = ""


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

    def forget(self) -> None:
        """Let go of modules that have to be loaded anew; called in the fork."""
        ...

    def stages(self) -> Sequence[Callable[[], str]]:
        """What a mutant meets, one after the other, until one returns what found it. Each has its own fork."""
        ...


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module out of a text in place of its file."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The module that is in the text."""
        return importlib.machinery.ModuleSpec(name, self) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the text."""
        exec(compile(self.source, f"{self.name} (mutated)", "exec"), module.__dict__)


def tried(target: Target, source: str) -> str:
    """What finds the module with this ``source``: the first killer's name, or nothing."""
    return next((word for stage in target.stages() if (word := in_a_process(target, source, stage))), "")


def in_a_process(target: Target, source: str, stage: Callable[[], str]) -> str:
    """What ``stage()`` returns in a fork that has the mutated module; `NO_END` for one that does not."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        signal.alarm(10 * SECONDS)  # for one that waits
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        try:
            target.forget()
            sys.meta_path.insert(0, Mutated(target.name, source))
            word = stage()
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
    for name in [name for name in sys.modules if name.startswith(prefixes)]:
        package, _, last = name.rpartition(".")
        vars(sys.modules[package]).pop(last, None) if package in sys.modules else None
        del sys.modules[name]


def own_tests(files: Sequence[str]) -> str:
    """Whether ``files`` of tests fail."""
    import pytest

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 1)
        status = pytest.main(
            ["-q", "-x", "-p", "no:cacheprovider", "--assert=plain", *(str(ROOT / file) for file in files)]
        )
    return "" if status == 0 else "tests"
