"""What the classes of a jar ask of other classes, read from the class files themselves.

A jar that was compiled with one Spark links with another when each class, field and method that
it names is there, a class still a class and an interface an interface, and each abstract method of
a supertype is implemented.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

Member = tuple[str, str]
"""Name and descriptor of a field or method."""

_STATIC, _INTERFACE, _ABSTRACT = 0x0008, 0x0200, 0x0400
_UTF8, _METHOD, _INTERFACE_METHOD = 1, 10, 11
_REFERENCES = (9, _METHOD, _INTERFACE_METHOD)
# Bytes after the tag of each other entry of the constant pool.
_WIDTHS = dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4) | {5: 8, 6: 8, 15: 3}
_WIDTHS |= dict.fromkeys((7, 8, 16, 19, 20), 2)
_TWO_PLACES = (5, 6)


@dataclass(frozen=True, slots=True)
class JavaClass:
    """One class file.

    Args:
        name: As class files spell it, with slashes.
        supertypes: Its superclass and its interfaces.
        is_abstract: Whether it is abstract, or an interface.
        is_interface: Whether it is an interface.
        members: Fields and methods with their access flags.
        references: Owner and member of each field and method that its code names.
        called: Owner of each method that its code names, and whether as one of an interface.
    """

    name: str
    supertypes: tuple[str, ...]
    is_abstract: bool
    is_interface: bool
    members: dict[Member, int]
    references: frozenset[tuple[str, Member]]
    called: frozenset[tuple[str, bool]]


def read_class(raw: bytes) -> JavaClass:
    """Read a class file ("The class File Format" of the Java Virtual Machine Specification)."""
    pool, at = _constants(raw)

    def text(index: int) -> str:
        return str(pool[index][1])

    def named(index: int) -> str:
        return text(int(pool[index][1]))

    flags, this, parent, count = struct.unpack_from(">4H", raw, at)
    interfaces = struct.unpack_from(f">{count}H", raw, at + 8)
    at += 8 + 2 * count
    members: dict[Member, int] = {}
    for _ in ("fields", "methods"):
        (count,) = struct.unpack_from(">H", raw, at)
        at += 2
        for _ in range(count):
            access, name, descriptor, attributes = struct.unpack_from(">4H", raw, at)
            members[text(name), text(descriptor)] = access
            at += 8
            for _ in range(attributes):
                at += 6 + int(struct.unpack_from(">I", raw, at + 2)[0])
    asked, called = set(), set()
    for tag, *places in pool.values():
        if tag in _REFERENCES:
            name, descriptor = pool[int(places[1])][1:]
            owner = named(int(places[0]))
            asked.add((owner, (text(int(name)), text(int(descriptor)))))
            if tag in (_METHOD, _INTERFACE_METHOD):
                called.add((owner, tag == _INTERFACE_METHOD))
    supertypes = tuple(named(index) for index in (parent, *interfaces) if index)
    return JavaClass(
        named(this),
        supertypes,
        bool(flags & _ABSTRACT),
        bool(flags & _INTERFACE),
        members,
        frozenset(asked),
        frozenset(called),
    )


def _constants(raw: bytes) -> tuple[dict[int, tuple[int | str, ...]], int]:
    """Give the entries of the constant pool by index, and the offset after it."""
    (count,) = struct.unpack_from(">H", raw, 8)
    pool: dict[int, tuple[int | str, ...]] = {}
    at, index = 10, 1
    while index < count:
        tag = raw[at]
        if tag == _UTF8:
            (size,) = struct.unpack_from(">H", raw, at + 1)
            pool[index] = (tag, raw[at + 3 : at + 3 + size].decode("utf-8", "replace"))
            at += 3 + size
        else:
            width = _WIDTHS[tag]
            places = struct.unpack_from(f">{width // 2}H", raw, at + 1)
            pool[index] = (tag, *places)
            at += 1 + width
        index += 2 if tag in _TWO_PLACES else 1
    return pool, at


class ClassPath:
    """The classes of some jars, each read when it is asked for."""

    def __init__(self, jars: Iterable[Path]) -> None:
        self._places: dict[str, zipfile.ZipFile] = {}
        self._read: dict[str, JavaClass | None] = {}
        for jar in jars:
            archive = zipfile.ZipFile(jar)
            for entry in archive.namelist():
                if entry.endswith(".class"):
                    self._places.setdefault(entry.removesuffix(".class"), archive)

    def find(self, name: str) -> JavaClass | None:
        if name not in self._read:
            place = self._places.get(name)
            self._read[name] = read_class(place.read(f"{name}.class")) if place else None
        return self._read[name]

    def lineage(self, name: str) -> Iterator[tuple[str, JavaClass | None]]:
        """Give a class and all its supertypes; None for those that are in no jar."""
        names, seen = [name], set[str]()
        while names:
            if (name := names.pop()) not in seen:
                seen.add(name)
                found = self.find(name)
                yield name, found
                names += found.supertypes if found else ()


def unlinked(jar: Path, class_path: ClassPath) -> set[str]:
    """List what the classes of a jar name and no jar has; Java's own classes are taken as there."""
    found: set[str] = set()
    with zipfile.ZipFile(jar) as archive:
        entries = [entry for entry in archive.namelist() if entry.endswith(".class")]
        for class_ in (read_class(archive.read(entry)) for entry in entries):
            for owner, member in class_.references:
                if not _is_there(class_path, owner, member):
                    found.add(f"{class_.name}: {owner}.{''.join(member)}")
            for owner, is_interface in class_.called:
                there = class_path.find(owner)
                if there is not None and there.is_interface is not is_interface:
                    found.add(
                        f"{class_.name}: {owner} {'is no' if is_interface else 'is an'} interface"
                    )
            if not class_.is_abstract:
                found |= {f"{class_.name}: no {what}" for what in _missing(class_path, class_)}
    return found


def _is_there(class_path: ClassPath, owner: str, member: Member) -> bool:
    if owner.startswith(("java/", "javax/", "[")):
        return True
    lineage = dict(class_path.lineage(owner))
    # Everything is an Object: its methods are looked for where they can only be.
    beyond = {
        name for name, ancestor in lineage.items() if ancestor is None and name.startswith("java/")
    }
    if any(ancestor and member in ancestor.members for ancestor in lineage.values()):
        return True
    return bool(beyond - {"java/lang/Object"}) or (
        lineage[owner] is not None and member[0] in _OF_OBJECT
    )


_OF_OBJECT = frozenset(("equals", "hashCode", "toString", "getClass", "clone"))


def _missing(class_path: ClassPath, of: JavaClass) -> set[str]:
    """List the abstract methods that a class inherits and nobody implements."""
    wanted: dict[Member, str] = {}
    implemented: set[Member] = set()
    for name, ancestor in class_path.lineage(of.name):
        for member, access in ancestor.members.items() if ancestor else ():
            if access & _ABSTRACT:
                wanted.setdefault(member, name)
            elif not access & _STATIC:
                implemented.add(member)
    return {f"{name}.{''.join(m)}" for m, name in wanted.items() if m not in implemented}
