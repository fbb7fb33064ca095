"""What runs inside the child process: everything here may be at work on a stranger's program."""
