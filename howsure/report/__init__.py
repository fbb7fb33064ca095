"""Reports: what they are made of, and how they are made."""
