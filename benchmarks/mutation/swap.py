"""A mutant in place: the functions of a loaded module get the code of a changed source, wherever they are kept."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from functools import _lru_cache_wrapper, cache
from types import CodeType, FunctionType
from typing import Any, Final

FUNCTION: Final = 1
"""``CO_OPTIMIZED``: the code of a function, not of a module or class."""
AT_ONCE: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@cache
def functions(file: str) -> tuple[FunctionType, ...]:
    """Every live function of ``file``. Asked for before a fork: there are many objects to look through."""
    found = (each for each in gc.get_objects() if isinstance(each, FunctionType))
    return tuple(each for each in found if each.__code__.co_filename == file)


@cache
def caches() -> tuple[Any, ...]:
    """What remembers what functions of ours have returned."""
    found = (each for each in gc.get_objects() if isinstance(each, _lru_cache_wrapper))
    return tuple(each for each in found if (each.__module__ or "").startswith(("vmm_conformance.", "vmm_reference.")))


def swapped(name: str, before: str, after: str) -> bool:
    """Give the functions of module ``name`` their code in ``after``; False if more than functions has changed."""
    file = str(sys.modules[name].__file__)
    old, new = (compile(source, file, "exec", dont_inherit=True) for source in (before, after))
    if _frame(old) != _frame(new):
        return False
    codes = {(one.co_qualname, one.co_firstlineno): other for one, other in zip(_codes(old), _codes(new), strict=True)}
    for function in functions(file):
        code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code is None or code.co_freevars != function.__code__.co_freevars:
            return False
        function.__code__ = code
    return True


def _at_import(code: CodeType) -> bool:
    return not code.co_flags & FUNCTION or code.co_name in AT_ONCE


def _frame(code: CodeType) -> tuple[Any, ...]:
    """What runs at import, with names in place of functions."""
    inner = tuple(
        (_frame(each) if _at_import(each) else each.co_name) if isinstance(each, CodeType) else (type(each), each)
        for each in code.co_consts
    )
    return code.co_code, code.co_names, inner


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of functions that are made at import, in the order of the source."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if _at_import(each):
                yield from _codes(each)
            else:
                yield each
