"""Errors of the processes: the worker, the jar, what is installed, what runs in them."""
