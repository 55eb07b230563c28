"""The fixtures of these tests."""

from emulated_world import make_world, world

__all__ = ["make_world", "world"]
