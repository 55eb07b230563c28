"""The child's side: answers one request after the other, until its parent is gone."""

from __future__ import annotations

import faulthandler
import gc
import math
import signal
from collections.abc import Sequence
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

from vmm_conformance.contracts import FATAL, DriverOptions
from vmm_conformance.history.events import History
from vmm_conformance.programs.program import Program
from vmm_conformance.running import journal
from vmm_conformance.running.dying import die_with
from vmm_conformance.running.ended import Ended
from vmm_conformance.running.explore import COLLECT_AFTER, Bench, Judged
from vmm_conformance.running.isolated.trail import Trail

TELL_STACK: Final = signal.SIGUSR1
"""Asks the child where it is."""


class Place(NamedTuple):
    """What is run where: the contract, the subject's spec, the driver."""

    contract: str
    spec: str
    driver: str


class Request(NamedTuple):
    """Run ``program``, or with None only make the subject.

    Without ``whole`` the history stays in the child; with it, it outlives the child as far as it came.
    """

    place: Place
    program: Program | None
    whole: bool = True


class Answer(NamedTuple):
    """What came of a request. ``broke`` is what broke a checker; ``spent`` says that this process is of no more use.

    ``ended`` are the arguments of an `Ended`: how a subject ended whose process is another one still.
    """

    judged: Judged | None = None
    broke: str = ""
    missing: str = ""
    spent: bool = False
    ended: tuple[str, str, int, tuple[str, ...]] | None = None


def main(arguments: Sequence[str]) -> None:
    """Serve. ``arguments`` are file numbers (connection, journal, stack file, trail) and the parent's id."""
    connection, notes, stack, trail, parent = map(int, arguments)
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends us
    faulthandler.enable(stack, all_threads=False)
    faulthandler.register(TELL_STACK, stack, all_threads=False)
    journal.keep(journal.Journal(notes))
    gc.set_threshold(*COLLECT_AFTER)
    serve(Connection(connection), Trail(trail))


def serve(connection: Connection, trail: Trail) -> None:
    """Answer until the other end closes."""
    while True:
        try:
            request: Request = connection.recv()
        except EOFError:
            return
        journal.began(journal.OUTSIDE)
        trail.begin(kept=request.whole)
        connection.send(answer(request))


def answer(request: Request) -> Answer:
    """Carry out one request; what a checker or the harness raises becomes part of the answer."""
    from vmm_conformance.running.benches import resolve_known
    from vmm_conformance.running.scheduler import Unseen
    from vmm_conformance.running.subjects import unavailable

    try:
        if request.program is None:
            return Answer(missing=unavailable(resolve_known(request.place.spec), request.place.driver))
        bench = _bench(request.place)
        judged = bench.run(request.program)
        spent = is_spent(judged.history, _opener(request.place, bench))
        kept = judged if request.whole else Judged(History(judged.history.header), judged.judge)
        return Answer(kept, spent=spent)
    except Ended as ended:
        # Spent, so that the time which the subject's next process takes to start is that of a child, and no program's.
        return Answer(spent=True, ended=(ended.kind, ended.how, ended.op, ended.stack))
    except (Exception, Unseen) as error:
        return Answer(broke=f"{type(error).__name__}: {error}")


@cache
def _bench(place: Place) -> Bench:
    from vmm_conformance.running.benches import bench_for, resolve_known
    from vmm_conformance.running.proc.subject import be_patient

    subject = resolve_known(place.spec)
    be_patient(subject, math.inf)  # the watch is kept outside
    return bench_for(place.contract, subject, place.driver)


def _opener(place: Place, bench: Bench) -> Any:
    return bench.subject.driver if place.contract == "driver" else bench.open_driver


def is_spent(history: History, open_driver: Any) -> bool:
    """Whether a device fault outlived its driver: a fresh one, tried after a fault, answers with an error too."""
    if not any(_fault(event) for event in history.events):
        return False
    try:
        driver = open_driver(DriverOptions())
        try:
            driver.device_synchronize(0)
        finally:
            driver.close()
    except Exception:  # whatever it is, the next program deserves better
        return True
    return False


def _fault(event: Any) -> bool:
    return event.status in FATAL or (event.kind == "ran" and event.args[2] is not None)
