"""The picture of a failure as data: a time axis, address ranges over it, and lanes of streams."""
