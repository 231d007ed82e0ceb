"""Every rule of the specification against the files of a namespace."""
