"""Runs programs: recorder, faults, one runner per contract, explorations and sessions."""
