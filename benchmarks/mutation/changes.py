"""What is changed: the mutants of a source, those of cosmic-ray's operators and every statement left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

LEFT_OUT: Final = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Delete)
NOT_USED: Final = ("_Is", "_IsNot", "VariableInserter", "VariableReplacer")
"""Endings of operators that are not used: ``is`` tells small numbers from large ones, the last two draw at random."""
TEXTS: Final = ("expected", "actual", "message")
"""Arguments that hold what is said beyond a verdict."""
HARMLESS: Final = (*TEXTS, "slots", "frozen", "strict")
"""Arguments whose changes nothing is to notice: texts, guards of a dataclass, a second look at equal lengths."""
ORDERS: Final = ("_Lt", "_LtE", "_Gt", "_GtE")
ALONE: Final = frozenset({"None", "True", "False"})


@dataclass(frozen=True, slots=True)
class Change:
    """One mutant: what made it, the first line that differs, what became of it, and its whole source."""

    operator: str
    line: int
    text: str
    source: str


def changes(source: str) -> Iterator[Change]:
    """Every mutant of ``source``; no two mean the same, and none means what the original does."""
    seen = {meaning(source)}
    for operator, changed in (*left_out(source), *by_cosmic_ray(source)):
        try:
            means = meaning(changed)
        except SyntaxError:
            continue
        if means not in seen:
            seen.add(means)
            yield Change(operator, *difference(source, changed), changed)


def meaning(source: str) -> str:
    """``source`` without annotations and docstrings, which mean nothing when it runs."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        for statement in getattr(node, "body", ()) if isinstance(getattr(node, "body", None), list) else ():
            if is_docstring(statement):
                statement.value = ast.Constant(None)
    return ast.dump(tree)


def left_out(source: str) -> Iterator[tuple[str, str]]:
    """Each statement that does something replaced by ``pass``."""
    tree = ast.parse(source)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, LEFT_OUT) and not is_docstring(node):
                lines = source.splitlines(keepends=True)
                first, last = node.lineno - 1, node.end_lineno or node.lineno
                lines[first:last] = [" " * node.col_offset + "pass\n", *["\n"] * (last - first - 1)]
                yield "leave out", "".join(lines)


def is_docstring(node: ast.AST) -> bool:
    """Whether a statement is a bare constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def by_cosmic_ray(source: str) -> Iterator[tuple[str, str]]:
    """What cosmic-ray's operators make of it; the tree is parsed once, and each node is changed in a copy."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast(source)))
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for name in sorted(operator_names()):
        if name.endswith(NOT_USED):
            continue
        operator = get_operator(name)()
        for node in nodes:
            if means_nothing(name, node):
                continue
            (first, column), (last, end) = node.start_pos, node.end_pos
            for index, _ in enumerate(operator.mutation_positions(node)):
                changed = operator.mutate(_alone(node), index)
                text, begin = ("", 0) if changed is None else (changed.get_code(include_prefix=False), column)
                before, after = source[: starts[first - 1] + begin], source[starts[last - 1] + end :]
                yield name.removeprefix("core/"), before + text + after


def means_nothing(operator: str, node: Any) -> bool:
    """Whether a change of ``node`` is only of words, or sets an order where there is none.

    Texts of messages, arguments that are `HARMLESS`, the ``*`` among parameters, an order of texts or of identities,
    and ``==`` in place of ``is`` for ``None``, booleans and members of an enum.
    """
    above = list(_above(node))
    if any(each.type == "fstring" for each in above):
        return True
    if any(each.type == "argument" and each.children[0].get_code(False) in HARMLESS for each in above):
        return True
    if "BinaryOperator_Mul_" in operator and any(each.type in ("param", "parameters") for each in above[1:2]):
        return True
    compared = next((each for each in above[:2] if each.type == "comparison"), None)
    return compared is not None and _no_order(operator, compared)


def _no_order(operator: str, compared: Any) -> bool:
    identity = "Operator_Is_" in operator or "Operator_IsNot_" in operator
    right = compared.children[-1].get_code(include_prefix=False)
    if operator.endswith(ORDERS):
        return identity or any(each.type == "string" for each in compared.children)
    owner, _, member = right.rpartition(".")
    return identity and (right in ALONE or (member.isupper() and owner[:1].isupper()))


def _above(node: Any) -> Iterator[Any]:
    """``node`` and what it is in, from the inside."""
    while node is not None:
        yield node
        node = node.parent


def _alone(node: Any) -> Any:
    """A copy of ``node`` and what is below it, in the tree that it came from."""
    parent, node.parent = node.parent, None
    copied = deepcopy(node)
    node.parent = copied.parent = parent
    return copied


def difference(before: str, after: str) -> tuple[int, str]:
    """The first line that differs, and what became of it."""
    old, new = before.splitlines(), after.splitlines()
    same = alike(old, new)
    tail = alike(old[same:][::-1], new[same:][::-1])
    gone, come = (" ".join(" ".join(lines[same : len(lines) - tail]).split()) for lines in (old, new))
    return same + 1, f"{gone} -> {come}"


def alike(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
