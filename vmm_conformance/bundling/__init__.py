"""Bundles: a report with what proves it, in one file that others can verify."""
