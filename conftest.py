"""This repository's own defaults for its tests; nothing here is part of what an installed user gets."""

pytest_plugins = ["pytester"]
