"""The risks: one contract (`protocol`), a class a file."""
