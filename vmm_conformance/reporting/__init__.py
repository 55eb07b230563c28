"""Reports: they read results and write text, and change nothing."""
