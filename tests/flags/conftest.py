from __future__ import annotations

from collections.abc import Callable

import pytest

from vmm_conformance.checkers.flags import judge
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.programs.program import Program
from vmm_conformance.running.flags import run

Judged = Callable[[Program, object], Judge]


@pytest.fixture
def judged() -> Judged:
    """What the checker says of one run."""

    def judged(program: Program, subject: object) -> Judge:
        return judge(run(program, subject))

    return judged
