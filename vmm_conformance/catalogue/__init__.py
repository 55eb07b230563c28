"""The catalogue of invariants: data in TOML files, and its loader."""

from vmm_conformance.catalogue.loader import Catalogue, CatalogueError, Invariant, catalogue

__all__ = ["Catalogue", "CatalogueError", "Invariant", "catalogue"]
