"""Runs programs that nobody adapted on an emulated library, and judges what they did with it."""
