"""Sets of pictures in archives: what lies in a zip or tar file, whose class it is, its pixels."""
