"""The evolutions of a head under a risk, and their common result."""
