"""Allocators of other projects, as subjects: thin layers that translate and decide nothing."""
