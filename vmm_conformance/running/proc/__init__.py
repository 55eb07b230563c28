"""Subjects in other processes, in any language: they talk JSON Lines on standard input and output."""
