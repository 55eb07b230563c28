"""How large is the HTML page of a large report, how long does writing it take, and how quick is it in a browser?

Reports are made up out of one real failure: the known-bad allocator that unmaps at once. The last row is a real kill
matrix. ``python benchmarks/report_page.py [--json] [--browser PATH]``
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from measuring import Result, command, seconds, table

from vmm_conformance import check
from vmm_conformance.contracts import CONTRACTS, Mutant
from vmm_conformance.related import all_mutants
from vmm_conformance.reporting.html.documents import Document, document
from vmm_conformance.reporting.html.page import render
from vmm_conformance.reporting.json_report import to_json
from vmm_conformance.reporting.kill_table import as_data
from vmm_conformance.running.kills import kill_matrix

MOST_BYTES, MOST_SECONDS = 2_000_000, 2.0
MOST_MS = 200
ROUNDS = 5
SIZES = ((100, 1, 5), (400, 1, 50), (400, 12, 50))
"""Invariants, columns and failures."""
VERDICTS = ("pass", "not exercised", "pass", "unknown")
Data = dict[str, Any]


def reports(invariants: int, columns: int, failures: int, broken: Data) -> list[Document]:
    """As many columns, each a report; the failures are in the first."""
    base = next(entry for entry in broken["subjects"][0]["invariants"] if entry["failures"])
    made = []
    for column in range(columns):
        data = json.loads(json.dumps(broken))
        section = data["subjects"][0]
        section["subject"] |= {"spec": f"subject-{column}", "name": f"subject-{column}"}
        section["invariants"] = [
            entry(base, number, column, fails=not column and number < failures) for number in range(invariants)
        ]
        made.append(document(data, f"night-{column}"))
    return made


def entry(base: Data, number: int, column: int, *, fails: bool) -> Data:
    """One invariant of one column."""
    id = f"AREA-{number}"
    if fails:
        return base | {"id": id, "failures": [failure | {"invariant": id} for failure in base["failures"]]}
    verdict = VERDICTS[(number + column) % 4]
    shown = {} if verdict == "pass" else {"witnesses": 0, "items": [], "reason": "no program reached it"}
    return base | {"id": id, "verdict": verdict, "failures": [], "program": None} | shown


def real_failure() -> Data:
    """The report on an allocator that unmaps at once."""
    mutant = next(mutant for mutant in all_mutants() if mutant.id == "allocator-unmaps-at-once")
    made: Data = json.loads(json.dumps(to_json(check(mutant.subject, budget="smoke"))))
    return made


def real_kills() -> Document:
    """A kill matrix with five variants of each contract."""
    chosen: list[Mutant] = []
    for contract in CONTRACTS:
        chosen += [mutant for mutant in all_mutants() if mutant.contract == contract][:5]
    return document(json.loads(json.dumps(as_data(kill_matrix(chosen)))), "kills")


def row(what: str, documents: list[Document]) -> Result:
    """Bytes and processor seconds."""
    pages: list[str] = []
    spent = [seconds(lambda: pages.append(render(documents))) for _ in range(ROUNDS)]
    return {"what": what, "bytes": len(pages[0].encode()), "seconds": statistics.median(spent)}


def in_browser(text: str, browser: str) -> Result:
    """Milliseconds of the page's own thread: to the first paint with and without script, and for one filter."""
    from playwright.sync_api import sync_playwright

    plain = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--headless"])
        without = [painted(started, Path(folder), plain)[0] for _ in range(ROUNDS)]
        within = [painted(started, Path(folder), text) for _ in range(ROUNDS)]
        started.close()
    middle = statistics.median(paint for paint, _ in within)
    return {
        "paint_ms": middle,
        "ratio": middle / statistics.median(without),
        "filter_ms": statistics.median(filtered for _, filtered in within),
    }


def painted(browser: Any, folder: Path, text: str) -> tuple[float, float]:
    """Open a page; milliseconds to its first paint, and those of a filter."""
    file = folder / "page.html"
    file.write_text(text, "utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime"))

    page.goto(file.as_uri())
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
    first = spent()
    page.evaluate(
        "() => { const field = document.querySelector('[name=text]'); field.value = 'area-39';"
        " field.dispatchEvent(new Event('input', { bubbles: true })); document.body.offsetHeight; }"
    )
    second = spent()
    context.close()
    return first, second - first


def measure(parsed: argparse.Namespace) -> Result:
    broken = real_failure()
    rows, largest = [], ""
    for size in SIZES:
        made = reports(*size, broken)
        rows.append(row("{} invariants by {}, {} failures".format(*size), made))
        largest = render(made)
    rows.append(row("kill matrix, 40 variants", [real_kills()]))
    return {"pages": rows, "browser": in_browser(largest, parsed.browser) if parsed.browser else None}


def lines(result: Result) -> list[str]:
    rows = [(page["what"], page["bytes"], page["seconds"]) for page in result["pages"]]
    said = table(("page", "bytes", "seconds to write"), rows)
    said.append(f"(goals for the third: under {MOST_BYTES:,} bytes, under {MOST_SECONDS:g} s)")
    found = result["browser"]
    if found is None:
        return [*said, "", "no browser, or no playwright: not painted"]
    return [
        *said,
        "",
        "the third in a browser, time of the page's own thread",
        f"first paint    {found['paint_ms']:.0f} ms, {found['ratio']:.2f} of the same page without script",
        f"filter by text {found['filter_ms']:.0f} ms  (goal: under {MOST_MS} ms)",
    ]


def found_browser() -> str:
    """Where a browser is, if playwright is here to drive it."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return ""
    return shutil.which("chromium") or ""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--browser", default=found_browser(), help="a chromium (default: the installed one)")


if __name__ == "__main__":
    command(__doc__, measure, lines, arguments=arguments)
