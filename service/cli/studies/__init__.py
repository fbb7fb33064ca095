"""``howsure study``: the table of a paper for the user's own model."""
