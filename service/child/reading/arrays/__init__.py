"""Arrays in NumPy files, and zip archives of them."""
