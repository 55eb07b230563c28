"""One test per item of the suites: ``pytest --pyargs vmm_suites --vmm-subject SPEC``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vmm_conformance.pytest_items import SuiteItem


def test_conformance(vmm_item: SuiteItem) -> None:
    """The subject keeps every must that this exploration or scenario puts to the test."""
    vmm_item.check()
