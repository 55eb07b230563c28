"""How long the suites take over each driver that is here: the driver's own, and the reference's over it.

Wall time, start and imports included. ``python benchmarks/suites.py [--json] [--budget NAME]``
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from measuring import Result, command, table

from vmm_conformance.drivers.opening import DRIVERS, facts

REFERENCE = ("--contract", "skip-remap", "--contract", "flags")
"""What a nightly run of a device judges of the reference, see ci/device_check.sh."""


def measure(parsed: argparse.Namespace) -> Result:
    rows = []
    for driver in DRIVERS:
        if not facts(driver).missing:
            versions = ", ".join(f"{name} {version}" for name, version in facts(driver).versions.items())
            suites = [timed(driver, driver, parsed.budget), timed("reference", driver, parsed.budget, *REFERENCE)]
            rows.append({"driver": driver, "versions": versions, "suites": suites})
    return {"budget": parsed.budget, "drivers": rows}


def timed(subject: str, driver: str, budget: str, *more: str) -> dict[str, Any]:
    """One run: seconds, and how many programs it came to."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", "--subject", subject, "--driver", driver, "--budget", budget, "--report", folder, *more]
        start = perf_counter()
        subprocess.run([sys.executable, "-m", "vmm_conformance.cli", *words], stdout=subprocess.DEVNULL, check=False)
        took = perf_counter() - start
        (section,) = json.loads(Path(folder, "report.json").read_text("utf-8"))["subjects"]
    return {"seconds": took, "programs": sum(item["executed"] for item in section["items"])}


def lines(result: Result) -> list[str]:
    head = [
        f"budget {result['budget']}, one process",
        "its own suite, s",
        "programs",
        "skip-remap and flags, s",
        "programs",
    ]
    rows = [
        [row["driver"], *(each[what] for each in row["suites"] for what in ("seconds", "programs"))]
        for row in result["drivers"]
    ]
    return [
        *table(head, rows),
        *(f"{row['driver']}: {row['versions']}" for row in result["drivers"] if row["versions"]),
    ]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budget", default="ci", help="smoke, dev, ci or nightly (default: ci)")


if __name__ == "__main__":
    command(__doc__ or "", measure, lines, arguments=arguments)
