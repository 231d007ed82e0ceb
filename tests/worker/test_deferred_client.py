"""The worker imports what it needs of lance_namespace; the rest is there when it is asked for."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from pennon.worker.requests.dispatch import defer_rest_client

defer_rest_client()
import lance_namespace
import pennon.worker.requests.operations

client = sys.modules["lance_namespace_urllib3_client"]
assert "lance_namespace_urllib3_client.api" not in sys.modules
from lance_namespace_urllib3_client import ApiClient, models
from lance_namespace_urllib3_client.api_client import ApiClient as Expected
from lance_namespace_urllib3_client.models import DescribeTableRequest

assert ApiClient is Expected
assert models.DescribeTableRequest is DescribeTableRequest is client.DescribeTableRequest
assert lance_namespace.DescribeTableRequest is DescribeTableRequest
assert "lance_namespace_urllib3_client.api" in sys.modules
try:
    client.no_such_name
except AttributeError:
    print("done")
"""


def test_the_rest_client_is_imported_when_it_is_asked_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"
