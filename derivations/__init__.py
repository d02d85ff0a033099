"""Derivations of the laws that popdyn computes with: one script, one claim."""
