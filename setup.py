"""Build the package with its jar: a wheel without it would install and then start nothing."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

JAR = Path(__file__).parent / "python" / "pennon" / "jars" / "pennon-spark.jar"


class BuildWithJar(build_py):
    """Refuses to build a wheel without the jar; an editable installation may come before it."""

    def run(self) -> None:
        """Check, then build."""
        if not self.editable_mode and not JAR.is_file():
            message = (
                f"Cannot build the wheel: {JAR} does not exist. "
                "Run make dist, which builds the jar first, or make jar."
            )
            raise SystemExit(message)
        super().run()


setup(cmdclass={"build_py": BuildWithJar})
