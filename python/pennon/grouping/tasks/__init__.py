"""Which leaves are read under which key: the tasks of a key group."""
