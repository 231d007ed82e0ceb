"""The command line: parse and print only."""

from pennon.cli.command_line import main

__all__ = ["main"]
