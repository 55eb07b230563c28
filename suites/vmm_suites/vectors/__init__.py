"""Programs with their right outcomes, as JSON for porters. ``python -m vmm_suites.vectors`` writes them anew."""
