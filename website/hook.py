"""Puts the generated pages beside the written ones: a hook of mkdocs."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pages import pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every generated page."""
    for name, content in pages().items():
        files.append(File.generated(config, name, content=content))
    return files
