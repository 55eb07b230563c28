"""What subjects allocate from."""
