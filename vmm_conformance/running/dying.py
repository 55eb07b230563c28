"""How processes end: one that ends with its parent, and what is said of one that ended.

As a script with a parent's id and a command, it becomes that command; it imports nothing of ours, to be quick.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with(parent: int) -> None:
    """End when the parent ends, however that happens, even amid a call that hangs (off Linux: at the next read)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit()


def become(parent: int, command: list[str]) -> None:
    """Be ``command`` from now on, as if nothing else had ever been here, and end with the parent."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    die_with(parent)
    os.execvp(command[0], command)


def ended_how(code: int) -> str:
    """How a process with this return code ended, in words."""
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


if __name__ == "__main__":
    become(int(sys.argv[1]), sys.argv[2:])
