"""``howsure evaluate``: one further set, or all those that a manifest lists."""
