"""What is run: operations as data, drawn from bytes, read from files, made small."""
