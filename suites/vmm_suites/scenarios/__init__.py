"""Directed scenarios, one module per contract."""
