"""Imports ``lance_namespace`` without the classes that only its REST client needs.

``lance_namespace`` needs the models of the package ``lance_namespace_urllib3_client``. That
package's own ``__init__`` imports its API classes too, which check their arguments by pydantic: two
thirds of the whole import, 0.7 s of CPU in the first query of a session. So its ``__init__`` is run
when somebody asks for a name of it.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Final

_CLIENT: Final = "lance_namespace_urllib3_client"


class _Deferred(ModuleType):
    """A package whose ``__init__`` has not run: its submodules can be imported all the same."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        # From now on its names are found as those of any other module.
        object.__setattr__(self, "__class__", ModuleType)
        spec = self.__spec__
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module(self)
        return getattr(self, name)


def defer_rest_client() -> None:
    """Let ``lance_namespace`` be imported without its REST client; call it before that.

    A worker owns its process. Elsewhere the package is left as it is.

    Example:
        >>> defer_rest_client()
        >>> from lance_namespace_urllib3_client import ApiClient
        >>> ApiClient.__name__
        'ApiClient'
    """
    if _CLIENT in sys.modules:
        return
    spec = find_spec(_CLIENT)
    if spec is None:
        return
    module = module_from_spec(spec)
    module.__class__ = _Deferred
    sys.modules[_CLIENT] = module
