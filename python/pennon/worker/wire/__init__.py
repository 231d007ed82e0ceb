"""What goes over the socket: frames, messages, and the opaque texts that the JVM carries."""
