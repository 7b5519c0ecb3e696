"""The command that prints a script for shells: it is run whenever a shell starts, so that it imports little."""

import click
from click.shell_completion import get_completion_class

from forecast_ledger.replay.console.shell import report_errors


@click.command("completion", epilog="Example: forecast-ledger completion bash")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@report_errors
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that lets a SHELL complete commands and ids.

    \b
    bash: put eval "$(forecast-ledger completion bash)" in ~/.bashrc
    zsh:  put eval "$(forecast-ledger completion zsh)" in ~/.zshrc, after compinit
    fish: forecast-ledger completion fish > ~/.config/fish/completions/forecast-ledger.fish

    The shell then completes the names of tables, and the contests, questions and participants in the log that the line
    names before them. The log is read for half a second at most, and never changed. Logs on a database server are not
    read.
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    script = get_completion_class(shell)
    if script is not None:
        print(script(ctx.find_root().command, {}, "forecast-ledger", "_FORECAST_LEDGER_COMPLETE").source())
