"""Process isolation: programs run in a child, whose end is a verdict and never the end of the run."""
