"""Code of the child process, which parses and runs uploaded files."""
