"""The suites as a function, for use without pytest."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path

from vmm_conformance.invocation import BadInvocation, Invocation
from vmm_conformance.reporting.conclusion import publish
from vmm_conformance.reporting.model import Report
from vmm_conformance.whole_run import known_contracts, run_all


def check(
    subject: object,
    *,
    contracts: Iterable[str] | None = None,
    budget: str = "ci",
    seed: int = 0,
    driver: str = "host",
    invariant: str = "",
    shard: str = "",
    hardened: bool = False,
    isolation: str = "none",
    timeout: int = 60,
    waivers: Path | str | None = None,
    today: date | None = None,
    report: Path | str | None = None,
) -> Report:
    """Run the suites on ``subject`` and report; in this process, or with ``isolation="process"`` in a child.

    ``subject`` is an object with a factory per contract, or its spec as text (an installed name or
    ``module:attribute``, with ``,key=value`` parameters). ``contracts`` leaves the others out. ``budget``
    is ``smoke``, ``dev``, ``ci`` or ``nightly``: 50, 500, 2,000 or 100,000 programs per contract.
    ``shard``, as in ``1/2``, is a part of the suites; the others are left to other machines.
    ``timeout`` are the seconds that an operation may take in a child, which finds its subject by its spec alone.
    ``waivers`` is a TOML file of expected failures; their expiry is compared with ``today``, by default this day (UTC).
    ``report`` is a folder for ``report.json``, ``conformance.xml`` and the programs of failures.

    Raises `BadInvocation`, a ``ValueError``, for a name that does not exist, and says what does.
    """
    chosen = known_contracts(contracts)
    spec = subject if isinstance(subject, str) else _name(subject)
    if isolation == "process" and not isinstance(subject, str):
        raise BadInvocation("isolation 'process' needs the subject's spec, an installed name or module:attribute")
    invocation = Invocation(
        subjects=(spec,), driver=driver, budget=budget, seed=seed, invariant=invariant, shard=shard, hardened=hardened,
        isolation=isolation, timeout=timeout, waivers=None if waivers is None else Path(waivers), today=today,
    )  # fmt: skip
    invocation.check_names()
    subjects = invocation.subject_objects() if isinstance(subject, str) else {spec: subject}
    made = run_all(invocation, subjects, contracts=chosen)
    if report is not None:
        publish(made, Path(report))
    return made


def _name(subject: object) -> str:
    return str(getattr(subject, "name", None) or getattr(subject, "__name__", None) or type(subject).__name__)
