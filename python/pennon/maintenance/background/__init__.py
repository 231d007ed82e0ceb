"""What a process does behind its commits, in a thread of its own."""
