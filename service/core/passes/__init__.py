"""Repeated runs of a model on the same samples: the noise they take and what their answers say."""
