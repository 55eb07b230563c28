"""Runs every benchmark; with ``--write`` the results also go into docs/benchmarks.md.

``python benchmarks/all.py [--write]``
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
SCRIPTS = {
    "host_driver": (),
    "programs": ("--memory",),
    "step": (),
    "vmm_allocator": (),
    "failure_points": (),
    "remap_ratio": (),
    "plugin_start": (),
    "shrink": (),
    "isolation": (),
    "emulated": (),
    "suites": (),
    "judge": (),
    "report_page": (),
}
"""Each benchmark and its arguments, in the order of the page."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="also write the results into docs/benchmarks.md")
    parser.add_argument("only", nargs="*", metavar="NAME", help=f"of {', '.join(SCRIPTS)} (default: all)")
    parsed = parser.parse_args()
    for name in parsed.only or SCRIPTS:
        text = output(name)
        print(f"== {name}\n{text}\n", flush=True)
        if parsed.write:
            write(name, text)
    if parsed.write:
        write("machine", machine())


def output(name: str) -> str:
    """What a benchmark prints."""
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), *SCRIPTS[name]], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def machine() -> str:
    """What it ran on."""
    return f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, Python {platform.python_version()}"


def write(name: str, text: str) -> None:
    """Put ``text`` between the page's two marks for ``name``."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
    page = PAGE.read_text("utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        sys.exit(f"{PAGE} has no place for {name}: put {begin.strip()} and {end} where its result belongs")
    PAGE.write_text(pattern.sub(lambda _: f"{begin}```\n{text}\n```\n{end}", page), "utf-8")


if __name__ == "__main__":
    main()
