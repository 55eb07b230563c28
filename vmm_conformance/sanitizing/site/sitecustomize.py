"""Starts watching before a Python program's first line: this folder stands first on the program's path."""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def _others() -> None:
    """Run the sitecustomize that this one stands in front of, if there is one."""
    path = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_others()
if os.environ.get("VMM_EMULATE"):
    try:
        from vmm_conformance.sanitizing.inside import begin
    except ImportError as error:
        print(f"vmm-conformance: {sys.executable} is not watched: {error}", file=sys.stderr)
    else:
        begin()
