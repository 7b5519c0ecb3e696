"""The commands of the command line, which are loaded when they are asked for."""

import click

from forecast_ledger.replay.cli.main import main


def loaded() -> dict[str, click.Command]:
    """Return every command by its name."""
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}
