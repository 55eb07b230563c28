"""Several reports held against each other: shards of one run joined, and one night told from another."""
