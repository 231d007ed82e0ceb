"""The picture of the imports between the folders, in ``docs/architecture.md``, drawn from the code.

``python -m tests.import_picture`` writes it (``make docs``).
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.test_architecture import (
    LEVELS,
    PACKAGE,
    everything_below,
    imported_subjects,
    subject_of,
    trees,
)

DOCUMENT = Path(__file__).parent.parent / "docs" / "architecture.md"
PLACE = re.compile(r"```mermaid\n.*?```", re.DOTALL)
# Everything imports the first two; the others are single modules beside the folders.
LEFT_OUT = {
    "errors",
    "settings",
    "java_runtime",
    "spark_versions",
    "starting_jvm",
    "session",
    "__init__",
    "demo",
}


def uses() -> dict[str, set[str]]:
    """What each folder imports from, itself aside."""
    found: dict[str, set[str]] = {}
    for path, tree in trees():
        own = subject_of(path)
        others = {other for _, other in imported_subjects(tree) if (PACKAGE / other).is_dir()}
        found.setdefault(own, set()).update(others - LEFT_OUT - {own})
    return {own: others for own, others in found.items() if own not in LEFT_OUT}


def picture() -> str:
    """Draw the imports that do not follow from others, upper folders first."""
    imports = uses()
    # Two folders of one level whose rooms use each other are drawn both ways.
    below = {folder: everything_below(folder, imports) for folder in imports}
    lines = ["```mermaid", "graph TD"]
    for level in reversed(LEVELS):
        for folder in sorted(level & set(imports)):
            others = imports[folder]
            implied = {
                lower for other in others if folder not in below[other] for lower in below[other]
            }
            lines += [f"    {folder} --> {other}" for other in sorted(others - implied)]
    return "\n".join([*lines, "```"])


def main() -> None:
    """Put the picture into the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(PLACE.sub(lambda _: picture(), text), encoding="utf-8")


if __name__ == "__main__":
    main()
