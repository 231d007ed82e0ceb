"""The subcommands of ``pennon``: they parse arguments, call and print."""
