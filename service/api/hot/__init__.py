"""The hot path: predictions, taken before the routes of everything else."""
