"""Changes code mechanically, one place at a time, and asks what notices; see docs/mutation.md."""
