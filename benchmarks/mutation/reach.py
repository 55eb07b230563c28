"""Which lines a call reaches, and which lines a change is in: who does not come by cannot notice it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from types import FrameType
from typing import Any

Lines = Mapping[str, frozenset[int]]
"""Lines that were reached, by module."""


@contextmanager
def watching(files: Iterable[str]) -> Iterator[dict[str, set[int]]]:
    """Fills what it yields with the lines of ``files`` that are reached inside, where nothing is remembered yet."""
    reached: dict[str, set[int]] = {file: set() for file in files}
    _forget_results(reached)
    known: dict[str, Callable[[FrameType, str, Any], Any]] = {}
    for file, lines in reached.items():
        known[file] = _keeping(lines)
    before = sys.gettrace()
    sys.settrace(lambda frame, event, _: known.get(frame.f_code.co_filename))
    try:
        yield reached
    finally:
        sys.settrace(before)


def _forget_results(files: Container[str]) -> None:
    """A function that remembers what it has returned to somebody else is not entered, though a change of it shows."""
    modules = [each for each in sys.modules.values() if getattr(each, "__file__", None) in files]
    for each in (each for module in modules for each in vars(module).values()):
        if isinstance(each, _lru_cache_wrapper):
            each.cache_clear()


def _keeping(lines: set[int]) -> Callable[[FrameType, str, Any], Any]:
    def keep(frame: FrameType, event: str, _: Any) -> Any:
        lines.add(frame.f_lineno)
        return keep

    return keep


def statement_at(source: str, line: int) -> frozenset[int] | None:
    """The lines of the statement that ``line`` is in, without its body; None outside functions: that runs at import."""
    best: ast.stmt | None = None
    inside = False
    for function in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.stmt) and node is not function and _head(node)[0] <= line <= _head(node)[1]:
                inside = True
                best = node if best is None or node.lineno >= best.lineno else best
    if not inside or best is None or isinstance(best, ast.FunctionDef):
        return None
    first, last = _head(best)
    return frozenset(range(first, last + 1))


def _head(node: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement; of a compound one, as far as its body."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return node.lineno, node.end_lineno or node.lineno
    first = body[0] if isinstance(body[0], ast.stmt) else body[0].pattern
    return node.lineno, max(node.lineno, first.lineno - 1)
