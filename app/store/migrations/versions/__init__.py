"""The steps of the schema, oldest first by file name."""
