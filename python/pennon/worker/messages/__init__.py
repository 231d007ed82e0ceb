"""Every message of the socket, declared."""
