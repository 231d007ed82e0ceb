"""Namespaces and tables under a catalog's root, through the ``lance_namespace`` interface.

A partitioned namespace is registered as a child *namespace*, marked by its properties
(`registration`). Spark sees it as a table; upstream's clients see a namespace. A plain Lance table
is what the implementation lists as a table.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import lance_namespace as upstream
from lance_namespace import errors as upstream_errors

from pennon.caching import Cache, TableKey, storage_identity
from pennon.catalog.configured_catalog import Catalog, known_name, near_names
from pennon.catalog.table_name import (
    LOCATION,
    Registration,
    check_new_namespace,
    is_table,
    registered,
    registration_of,
    relative_location,
)
from pennon.errors import (
    CatalogRefused,
    NamespaceAlreadyExists,
    NamespaceChangeRefused,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PennonError,
    RootNotUsable,
    TableAlreadyExists,
    TableNotFound,
    UnknownImplementation,
    WriteConflict,
)
from pennon.manifest.dataset.storage import is_of_storage, storage_failure, storage_problem
from pennon.manifest.registered_location import StoredName, change_properties
from pennon.settings import DEFAULT_NAMESPACE

__all__ = ["Directory", "Registration", "place_seen", "saw_place"]

_CONNECTIONS: Final[Cache[Any]] = Cache(
    "connections to implementations", max_bytes=64, weigh=lambda _: 1
)
# Where tables of stores were last, and when, by the monotonic clock, they were looked for.
_PLACES: Final[Cache[tuple[str, float]]] = Cache(
    "places of tables", max_bytes=1000, weigh=lambda _: 1
)
_NOT_STARTED = (ValueError, ImportError, AttributeError, TypeError)
_PAGE = 1000
# Namespaces that are searched for the sake of a message.
_MOST_SEARCHED: Final = 20
_WHEN_MADE = "Set them in CREATE NAMESPACE … WITH DBPROPERTIES"

Name = tuple[str, ...]
T = TypeVar("T")


def place_seen(catalog: Catalog, identifier: Name) -> tuple[str | None, float]:
    """Tell where a table was last, and when it was looked for: None where nobody has.

    Args:
        catalog: The catalog.
        identifier: Namespaces and name.
    """
    return _PLACES.peek(_place_key(catalog, identifier)) or (None, -math.inf)


def saw_place(catalog: Catalog, identifier: Name, location: str, asked_at: float) -> None:
    """Remember where a table is.

    Args:
        catalog: The catalog.
        identifier: Namespaces and name.
        location: Path or URL.
        asked_at: Before it was looked for, by the monotonic clock.
    """
    _PLACES.keep(_place_key(catalog, identifier), (location, asked_at))


def _place_key(catalog: Catalog, identifier: Name) -> TableKey:
    storage = storage_identity(catalog.storage_of(identifier))
    return TableKey(catalog.root, 0, "", storage, "\0".join(identifier))


def _forget_places() -> None:
    _PLACES.forget(lambda _: True)


class Directory:
    """The namespaces and tables of one catalog.

    Args:
        catalog: Root, implementation and storage options.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        stated = catalog.options.get(DEFAULT_NAMESPACE.name)
        # There without being made, as JDBC's clients begin in it; of a lake only read as well.
        self._default = (stated,) if stated else None
        self._check_root()
        if catalog.is_local:
            self._connect()

    @property
    def _client(self) -> Any:
        """The implementation; on a store many questions are answered without it."""
        return self._connect()

    def _connect(self) -> Any:
        catalog = self.catalog
        asked = catalog.name, catalog.implementation, storage_identity(catalog.namespace)
        key = TableKey(catalog.root, 0, "", storage_identity(catalog.storage), asked)
        return _CONNECTIONS.find(key, partial(_connect, catalog))

    def namespaces(self, parent: Name) -> list[Name]:
        """List child namespaces, without those that are tables to Spark."""
        children = self._children(parent)
        return [child for child in children if not is_table(self._describe(child))]

    def with_descendants(self, parent: Name) -> Iterator[Name]:
        """Give a namespace and all below it."""
        yield parent
        for child in self.namespaces(parent):
            yield from self.with_descendants(child)

    def tables(self, parent: Name) -> list[str]:
        """List plain tables and partitioned namespaces."""
        partitioned = [
            child[-1] for child in self._children(parent) if is_table(self._describe(child))
        ]
        return sorted({*self._plain_tables(parent), *partitioned})

    def properties(self, namespace: Name) -> dict[str, str]:
        """Give the properties of a namespace.

        Raises:
            NamespaceNotFound: There is none, or it is a table to Spark.
        """
        self._check_root()
        if not namespace:
            return {LOCATION: self.catalog.root}
        properties = self._describe(namespace)
        if properties is None or is_table(properties):
            raise NamespaceNotFound(
                namespace=self.catalog.full_name(namespace), near=self._near_namespaces(namespace)
            )
        return dict(properties)

    def create_namespace(
        self, namespace: Name, properties: Mapping[str, str], *, if_not_exists: bool
    ) -> None:
        """Create a namespace; the root is made when its own parent exists.

        Raises:
            NamespaceAlreadyExists: There is one.
            NamespaceNotFound: Its parent is missing.
            NamespaceChangeRefused: It would have a location.
        """
        check_new_namespace(self.catalog, namespace, properties)
        self._make_above(namespace)
        self.properties(namespace[:-1])  # what is named as missing is the parent
        if (existing := self._describe(namespace)) is not None:
            if if_not_exists and not is_table(existing):
                return
            kind = "a table" if is_table(existing) else "a namespace"
            raise NamespaceAlreadyExists(namespace=self.catalog.full_name(namespace), kind=kind)
        request = upstream.CreateNamespaceRequest(id=list(namespace), properties=dict(properties))
        self._ask("create namespace", namespace, lambda: self._client.create_namespace(request))

    def drop_namespace(self, namespace: Name) -> None:
        """Drop an empty namespace.

        Raises:
            NamespaceNotFound: There is none.
            NamespaceNotEmpty: It has tables or namespaces.
        """
        self.properties(namespace)
        contents = [
            *self.tables(namespace),
            *(".".join(child) for child in self.namespaces(namespace)),
        ]
        if contents:
            shown = ", ".join(contents[:5]) + (", …" if len(contents) > 5 else "")  # noqa: PLR2004
            raise NamespaceNotEmpty(namespace=self.catalog.full_name(namespace), contents=shown)
        self._deregister(namespace)

    def alter_namespace(
        self, namespace: Name, changed: Mapping[str, str], removed: Sequence[str]
    ) -> None:
        """Change the properties of a namespace.

        The interface has no change of properties. A directory namespace keeps them in a row of its
        manifest; with another implementation the namespace is made again, while it is empty.

        Raises:
            NamespaceChangeRefused: It is the root, not empty, or would have a location.
            WriteConflict: Another writer changed or dropped it meanwhile.
        """
        check_new_namespace(self.catalog, namespace, changed)
        before = self.properties(namespace)
        after = {name: value for name, value in before.items() if name not in removed}
        after.update(changed)
        shown = self.catalog.full_name(namespace)
        if not namespace:
            why = "a catalog's root has none"
            raise NamespaceChangeRefused(namespace=shown, why=why, advice=_WHEN_MADE)
        self._store_default(namespace)
        if self.catalog.implementation == "dir":
            root, storage = self.catalog.root, self.catalog.storage
            is_changed = change_properties(root, namespace, before, after, storage)
            if not is_changed and self.properties(namespace) != after:
                raise WriteConflict(table=shown, why="another writer changed or dropped it")
            return
        if self.tables(namespace) or self._children(namespace):
            why = "its implementation can set properties only when a namespace is made"
            raise NamespaceChangeRefused(namespace=shown, why=why, advice=_WHEN_MADE)
        self._deregister(namespace)
        self.create_namespace(namespace, after, if_not_exists=False)

    def find(self, identifier: Name) -> Registration | None:
        """Find a table by its name; None quickly when there is none."""
        self._check_root()
        return self._table_of(identifier, self._known(identifier))

    def _table_of(self, identifier: Name, known: StoredName) -> Registration | None:
        if known.is_free:
            return None
        if (registration := registered(self.catalog, identifier, known.properties)) is not None:
            return registration
        request = upstream.DescribeTableRequest(id=list(identifier))
        try:
            answer = self._client.describe_table(request)
        except (upstream_errors.TableNotFoundError, upstream_errors.NamespaceNotFoundError):
            return None
        except upstream_errors.LanceNamespaceError as error:
            raise self._refused("find table", identifier, error) from error
        return (
            Registration(self.catalog.address(answer.location), False) if answer.location else None
        )

    def registration(self, identifier: Name) -> Registration:
        """Find a table by its name.

        Raises:
            TableNotFound: There is none; the error lists near names.
        """
        registration = self.find(identifier)
        if registration is None:
            raise TableNotFound(
                table=self.catalog.full_name(identifier), near=self._near_tables(identifier)
            )
        return registration

    def check_absent(self, identifier: Name) -> None:
        """Check that a name is free and its namespace there.

        Raises:
            TableAlreadyExists: There is a table or a namespace of that name.
            NamespaceNotFound: The namespace is missing.
        """
        self._make_above(identifier)
        self.properties(identifier[:-1])
        name, known = self.catalog.full_name(identifier), self._known(identifier)
        if self._table_of(identifier, known) is not None:
            raise TableAlreadyExists(table=name, kind="a table")
        if known.properties is not None:
            raise TableAlreadyExists(table=name, kind="a namespace")

    def register(self, identifier: Name, location: str) -> None:
        """Make a partitioned namespace known under a name: the last step of a creation."""
        _forget_places()
        request = upstream.CreateNamespaceRequest(
            id=list(identifier), properties=registration_of(self.catalog, location)
        )
        try:
            self._client.create_namespace(request)
        except upstream_errors.NamespaceAlreadyExistsError as error:
            name = self.catalog.full_name(identifier)
            raise TableAlreadyExists(table=name, kind="a table") from error
        except upstream_errors.LanceNamespaceError as error:
            raise self._refused("create table", identifier, error) from error

    def register_plain(self, identifier: Name, location: str) -> None:
        """Make a plain Lance dataset below the root known under a name."""
        request = upstream.RegisterTableRequest(
            id=list(identifier), location=relative_location(self.catalog, location)
        )
        self._ask("register table", identifier, lambda: self._client.register_table(request))

    def deregister(self, identifier: Name) -> None:
        """Forget a partitioned namespace; its files stay."""
        self._deregister(identifier)

    def deregister_plain(self, identifier: Name) -> None:
        """Forget a plain Lance table; its files stay."""
        request = upstream.DeregisterTableRequest(id=list(identifier))
        self._ask("replace table", identifier, lambda: self._client.deregister_table(request))

    def drop_plain(self, identifier: Name) -> bool:
        """Drop a plain Lance table with its files.

        Returns:
            False where upstream lists and reads the table, but its manifest does not have it (a
            folder of a listing without a manifest): it drops no such table.
        """
        request = upstream.DropTableRequest(id=list(identifier))
        try:
            self._ask("drop table", identifier, lambda: self._client.drop_table(request))
        except CatalogRefused as refused:
            if isinstance(refused.__cause__, upstream_errors.TableNotFoundError):
                return False
            raise
        return True

    def _deregister(self, identifier: Name) -> None:
        _forget_places()
        request = upstream.DropNamespaceRequest(id=list(identifier))
        self._ask("drop", identifier, lambda: self._client.drop_namespace(request))

    def _describe(self, name: Name) -> Mapping[str, str] | None:
        if not name or self.catalog.is_local:
            return self._ask_for(name)
        return self._known(name).properties

    def _known(self, name: Name) -> StoredName:
        return known_name(self.catalog, name, partial(self._ask_for, name))

    def _ask_for(self, name: Name) -> Mapping[str, str] | None:
        if not name:
            return {}
        request = upstream.DescribeNamespaceRequest(id=list(name))
        try:
            return self._client.describe_namespace(request).properties or {}
        except upstream_errors.NamespaceNotFoundError:
            return {} if name == self._default else None
        except upstream_errors.LanceNamespaceError as error:
            raise self._refused("describe namespace", name, error) from error

    def _children(self, parent: Name) -> list[Name]:
        self.properties(parent)
        names = self._pages(
            lambda token: self._client.list_namespaces(
                upstream.ListNamespacesRequest(id=list(parent), page_token=token, limit=_PAGE)
            ),
            lambda answer: answer.namespaces,
            parent,
        )
        if not parent and self._default is not None:
            names += self._default
        return [(*parent, name) for name in sorted(set(names))]

    def _plain_tables(self, parent: Name) -> list[str]:
        return self._pages(
            lambda token: self._client.list_tables(
                upstream.ListTablesRequest(id=list(parent), page_token=token, limit=_PAGE)
            ),
            lambda answer: answer.tables,
            parent,
        )

    def _pages(
        self,
        ask: Callable[[str | None], Any],
        names: Callable[[Any], list[str]],
        parent: Name,
    ) -> list[str]:
        listed: list[str] = []
        token: str | None = None
        while True:
            try:
                answer = self._ask("list", parent, partial(ask, token))
            except NamespaceNotFound:
                if parent != self._default:
                    raise
                return []
            listed += names(answer)
            before, token = token, answer.page_token or None
            if token is None or token == before:
                return listed

    def _near_namespaces(self, namespace: Name) -> str:
        if self.find(namespace) is not None:
            return "it is a table"
        parent = namespace[:-1]
        if parent and self._describe(parent) is None:
            return f"{self.catalog.full_name(parent)} does not exist either"
        siblings = [child[-1] for child in self.namespaces(parent)]
        return near_names(namespace[-1], siblings, "namespaces")

    def _near_tables(self, identifier: Name) -> str:
        parent = identifier[:-1]
        if parent and (self.find(parent) or self._describe(parent) is None):
            near = self._near_namespaces(parent)
            return f"there is no namespace {self.catalog.full_name(parent)}, {near}"
        if self._describe(identifier) is not None:
            return "it is a namespace"
        below = [] if parent else self._tables_of_name(identifier[-1])
        if below:
            return f"did you mean {' or '.join(below)}"
        return near_names(identifier[-1], self.tables(parent), "tables")

    def _tables_of_name(self, name: str) -> list[str]:
        """Give the tables of a name in the first namespaces, where it was asked for without one."""
        namespaces = self.namespaces(())[:_MOST_SEARCHED]
        return [".".join((*above, name)) for above in namespaces if name in self.tables(above)]

    def _check_root(self) -> None:
        if not self.catalog.is_local:
            return
        root = self.catalog.root
        if os.path.isdir(root):  # noqa: PTH112 - says no, too, of names that are too long
            if not os.access(root, os.R_OK | os.X_OK):
                raise self._unusable("it cannot be read")
        elif os.path.exists(root):  # noqa: PTH110
            raise self._unusable("it is a file and not a folder")
        elif not os.path.isdir(above := os.path.dirname(root)):  # noqa: PTH112, PTH120
            why = f"the folder {above} does not exist"
            raise self._unusable(why)

    def _make_above(self, name: Name) -> None:
        """Make what is there without being made, for a name to be stored in it."""
        self._make_root()
        self._store_default(name[:-1])

    def _store_default(self, namespace: Name) -> None:
        if self._default is None or namespace[:1] != self._default:
            return
        request = upstream.CreateNamespaceRequest(id=list(self._default))
        try:
            self._client.create_namespace(request)
        except upstream_errors.NamespaceAlreadyExistsError:
            return
        except upstream_errors.LanceNamespaceError as error:
            raise self._refused("create namespace", self._default, error) from error

    def _make_root(self) -> None:
        self._check_root()
        if not self.catalog.is_local:
            return
        root = Path(self.catalog.root)
        try:
            root.mkdir(exist_ok=True)
        except OSError as error:
            why = f"it cannot be created ({error.strerror})"
            raise self._unusable(why) from error
        if not os.access(root, os.W_OK):
            raise self._unusable("it cannot be written")

    def _unusable(self, why: str) -> RootNotUsable:
        return RootNotUsable(root=self.catalog.root, catalog=self.catalog.name, why=why)

    def _ask(self, action: str, name: Name, call: Callable[[], T]) -> T:
        full_name = self.catalog.full_name(name)
        try:
            return call()
        except upstream_errors.NamespaceNotFoundError as error:
            raise NamespaceNotFound(namespace=full_name, near=_one_line(error)) from error
        except upstream_errors.NamespaceNotEmptyError as error:
            raise NamespaceNotEmpty(namespace=full_name, contents=_one_line(error)) from error
        except upstream_errors.LanceNamespaceError as error:
            raise self._refused(action, name, error) from error

    def _refused(self, action: str, name: Name, error: Exception) -> PennonError:
        if is_of_storage(error):
            return storage_failure(action, self.catalog.full_name(name), error)
        return CatalogRefused(
            action=action, object=self.catalog.full_name(name), reason=_one_line(error)
        )


def _connect(catalog: Catalog) -> Any:
    name, root, implementation = catalog.name, catalog.root, catalog.implementation
    try:
        return upstream.connect(implementation, catalog.connection)
    except (*_NOT_STARTED, upstream_errors.LanceNamespaceError) as error:
        if is_of_storage(error):
            raise storage_failure("use the root", root, error) from error
        if implementation == "dir" or not isinstance(error, _NOT_STARTED):
            raise RootNotUsable(root=root, catalog=name, why=_one_line(error)) from error
        raise UnknownImplementation(
            catalog=name, implementation=implementation, why=_one_line(error)
        ) from error


def _one_line(error: Exception) -> str:
    return storage_problem(error) or type(error).__name__
