from typing import Any

from pyarrow import Table

class ReadOptions:
    def __init__(self, use_threads: bool | None = None, block_size: int | None = None) -> None: ...

class ParseOptions:
    def __init__(self, **options: Any) -> None: ...

def read_json(
    input_file: object,
    read_options: ReadOptions | None = None,
    parse_options: ParseOptions | None = None,
) -> Table: ...
