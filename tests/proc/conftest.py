"""What a test of a subject in another process starts ends with it."""

from __future__ import annotations

import pytest

from vmm_conformance.running.proc.subject import end_all
from vmm_conformance.running.session import end_children


@pytest.fixture(autouse=True)
def no_process_stays():
    yield
    end_all()
    end_children()
