"""The same work done by popdyn and by what else could do it, checked, then timed in one run."""
