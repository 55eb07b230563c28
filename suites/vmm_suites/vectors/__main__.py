"""Writes the vectors that lie here: ``python -m vmm_suites.vectors``; with ``--check`` it compares them."""

from __future__ import annotations

import sys
from pathlib import Path

from vmm_conformance.vectors.command import main

if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent))
