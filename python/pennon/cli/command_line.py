"""The command line: ``pennon describe | plan | sql | serve``. It parses and prints only."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import pennon
from pennon.catalog.configured_catalog import Catalog, is_local, stated_place
from pennon.catalog.directory import Directory
from pennon.cli.commands import (
    Commands,
    add_root,
    add_storage,
    add_table_commands,
    add_upkeep_commands,
    lake_of,
    pair,
    pairs,
    positive,
)
from pennon.errors import PennonError
from pennon.manifest.dataset.storage import storage_failure

_HIGHEST_PORT = 65_535


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: The words behind ``pennon``; None takes those of this process.

    Returns:
        The exit code: 0, or 1 after an error, which is printed as one message.
    """
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except PennonError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (head, less) has seen enough; a flush at exit would say so once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # Lance's errors of a disk or a store that no command foresaw.
        place = getattr(options, "table", None) or getattr(options, "root", None) or "the files"
        print(storage_failure(options.command, str(place), error), file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """Make the parser of all commands."""
    command_line = argparse.ArgumentParser(
        prog="pennon", description="Lance Partitioned Namespaces as tables of Spark SQL."
    )
    command_line.add_argument("--version", action="version", version=f"pennon {pennon.__version__}")
    commands = command_line.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_table_commands(commands)
    _add_sql(commands)
    _add_serve(commands)
    _add_conf_command(commands)
    add_upkeep_commands(commands)
    return command_line


def _add_sql(commands: Commands[argparse.ArgumentParser]) -> None:
    sql = commands.add_parser("sql", help="a prompt for Spark SQL, or run statements")
    add_root(sql, ".")
    sql.add_argument("--name", default="lance", help="name of the catalog (default: lance)")
    sql.add_argument("-e", dest="statements", action="append", default=[], metavar="SQL")
    sql.add_argument("-f", dest="files", action="append", default=[], metavar="FILE")
    sql.add_argument(
        "--format",
        choices=("table", "csv", "json", "parquet"),
        default="table",
        help="how rows are printed (default: table)",
    )
    sql.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="at most so many rows (default: all; the first 1,000 at a terminal)",
    )
    sql.add_argument("--master", help="Spark's master")
    _add_conf(sql)
    add_storage(sql)
    sql.set_defaults(run=_sql)


def _add_serve(commands: Commands[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser("serve", help="start a server of Spark with the catalog")
    serve.add_argument("server", choices=("thrift", "connect"))
    add_root(serve, ".")
    serve.add_argument("--name", default="lance", help="name of the catalog (default: lance)")
    serve.add_argument(
        "--catalog",
        help="where names without a catalog are (default: the lake; Spark's own is spark_catalog)",
    )
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=_port)
    serve.add_argument("--master", help="Spark's master")
    _add_conf(serve)
    serve.set_defaults(run=_serve)


def _add_conf_command(commands: Commands[argparse.ArgumentParser]) -> None:
    conf = commands.add_parser(
        "conf", help="print Spark's settings for spark-submit --properties-file; the jar among them"
    )
    add_root(conf, ".")
    conf.add_argument("--name", default="lance", help="name of the catalog (default: lance)")
    conf.set_defaults(run=_conf)


def _add_conf(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=pair,
        metavar="KEY=VALUE",
        help="setting of Spark",
    )


def _port(text: str) -> int:
    number = int(text)
    if not 0 < number <= _HIGHEST_PORT:
        message = f"{text} is not between 1 and {_HIGHEST_PORT}"
        raise argparse.ArgumentTypeError(message)
    return number


def _sql(options: argparse.Namespace) -> int:
    from pennon import session  # noqa: PLC0415 - needs pyspark
    from pennon.cli import prompt as shell  # noqa: PLC0415 - needs pyspark
    from pennon.cli.prompt import LakeNames  # noqa: PLC0415 - needed by the prompt alone
    from pennon.cli.query_run import Format  # noqa: PLC0415 - needs pyspark

    output_format = Format(options.format)
    if output_format is Format.PARQUET and sys.stdout.isatty():
        print("--format parquet writes a file: pennon sql … > rows.parquet", file=sys.stderr)
        return 2
    _check_root(options)
    builder = session.spark(
        options.root, options.name, storage_options=pairs(options.storage) or None
    )
    if options.master:
        builder = builder.master(options.master)
    for key, value in pairs(options.conf).items():
        builder = builder.config(key, value)
    return shell.run(
        builder,
        statements=options.statements,
        files=options.files,
        output_format=output_format,
        limit=options.limit,
        names=LakeNames(options.name, lambda: lake_of(options)),
    )


def _conf(options: argparse.Namespace) -> int:
    from pennon import session  # noqa: PLC0415 - needs pyspark

    for key, value in session.spark_conf(options.root, options.name).items():
        print(key, value)
    return 0


def _check_root(options: argparse.Namespace) -> None:
    """Refuse a local root that is none before Spark is started with it.

    Raises:
        RootNotUsable: It is a file, or the folder above it does not exist.
    """
    if is_local(options.root):
        Directory(Catalog(options.name, stated_place(options.root, "root")))


def _serve(options: argparse.Namespace) -> int:
    from pennon.cli import serve  # noqa: PLC0415 - needs pyspark

    _check_root(options)
    return serve.serve(
        serve.Serving(
            serve.SERVERS[options.server],
            stated_place(options.root, "root"),
            options.name,
            options.host,
            options.port,
            options.master,
            pairs(options.conf),
            options.catalog,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
