"""Programs with their right outcomes as language-neutral JSON, for whoever tests an implementation elsewhere."""
