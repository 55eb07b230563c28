"""The conformance suites: explorations and directed scenarios, as data.

``pytest --pyargs vmm_suites`` runs them.
"""

from vmm_suites.explorations import SUITES

__all__ = ["SUITES"]
