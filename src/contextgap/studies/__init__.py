"""Studies: problems, experiments, their reports, and the theory of the paper."""
