"""A bench whose programs run in a child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vmm_conformance.programs.program import Program
from vmm_conformance.running.ended import Broke, Ended
from vmm_conformance.running.explore import Judged
from vmm_conformance.running.isolated.child import Answer, Place, Request
from vmm_conformance.running.isolated.process import KEEPER, MAKING, Keeper
from vmm_conformance.running.plugs import Plug


@dataclass(slots=True)
class IsolatedBench:
    """As `explore.Bench`, in a child process: ``run`` and ``brief`` raise `Ended` where that one ended.

    ``patience`` are the seconds without progress after which it counts as hanging.
    """

    plug: Plug
    place: Place
    subject: Any
    patience: float
    unseen: Mapping[str, str] = field(default_factory=dict)
    keeper: Keeper = field(default_factory=lambda: KEEPER)
    _made: int = -1

    def decode(self, data: bytes, pins: Mapping[str, Any]) -> Program:
        """As `explore.Bench.decode`: programs are drawn here, by what the subject declares here."""
        return self.plug.decode(data, self.plug.declared(pins, self.subject))

    def missing(self) -> str:
        """Makes the subject in the child. Why nothing can be run here, or empty. Raises `Ended`."""
        answer = self.keeper.ask(Request(self.place, None), max(self.patience, MAKING))
        if answer.broke:
            raise Broke(answer.broke)
        self._made = self.keeper.started
        return answer.missing

    def run(self, program: Program) -> Judged:
        """Run and judge ``program`` once; the whole history comes back."""
        return self._judged(program, whole=True)

    def brief(self, program: Program) -> Judged:
        """The same without the events of the history."""
        return self._judged(program, whole=False)

    def _judged(self, program: Program, *, whole: bool) -> Judged:
        if self._made != self.keeper.started or self.keeper.pid is None:
            self.missing()  # a fresh child: what it takes to start is no program's hanging
        answer: Answer = self.keeper.ask(Request(self.place, program, whole), self.patience)
        if answer.ended:
            raise Ended(*answer.ended)
        if answer.judged is None:
            raise Broke(answer.broke)
        return answer.judged
