"""The fixtures of these tests."""

from machine_world import listening, machine, redis_place, suites

__all__ = ["listening", "machine", "redis_place", "suites"]
