"""Failures that are known and borne for a while: read from a file, run, and held to what they say."""
