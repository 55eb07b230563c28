"""Pure judges: from a history to witnesses and findings. They know no driver and no subject."""
