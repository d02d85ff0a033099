"""The experiments: a module a claim, each with its `Config`, `run` and `Result`."""
