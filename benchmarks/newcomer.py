"""The newcomer's path, from nothing: an environment, an install, an allocator with a bug, the first finding.

python benchmarks/newcomer.py [WHAT]   # WHAT is what pip installs: this checkout if nothing is given
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
(ALLOCATOR,) = re.findall(r"<!-- file: pool.py -->\n```python\n(.*?)```", TUTORIAL, re.DOTALL)


def main(what: str = str(ROOT)) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pool.py").write_text(ALLOCATOR, "utf-8")
        bin_ = Path(folder, "venv", "bin")
        _, took = timed([sys.executable, "-m", "venv", "venv"], folder)
        print(f"an empty environment: {took:.1f} s")
        _, installed = timed([str(bin_ / "pip"), "install", "--quiet", what], folder)
        print(f"pip install: {installed:.1f} s")
        command = [str(bin_ / "vmm-conformance"), "run", "--subject", "pool:pool", "--budget"]
        for budget in ("smoke", "ci"):
            told, took = timed([*command, budget], folder)
            assert "ALLOCATOR-5 fails" in told, told
            print(f"pip install and the findings of budget {budget}: {installed + took:.1f} s")


def timed(command: Sequence[str], folder: str) -> tuple[str, float]:
    """What a command prints, and seconds."""
    start = perf_counter()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout, perf_counter() - start


if __name__ == "__main__":
    main(*sys.argv[1:])
