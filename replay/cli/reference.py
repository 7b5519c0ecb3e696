"""The commands that print the reference: JSON Schema, and help on a topic."""

import shutil
from pathlib import Path

import click

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.replay.cli.shell import emit, fail, report_errors
from forecast_ledger.replay.cli.terminal import Look, View, table_options
from forecast_ledger.replay.reading.blocks import Table, as_text
from forecast_ledger.replay.reference.exit_codes import USAGE

LARGEST_RULES = 2**20  # bytes of a file of rules
SCHEMAS = ("commands", "events", "rules", "errors", "tables")
_WIDEST = 100  # columns of a line of help, at most


@click.command(epilog="Example: forecast-ledger schema commands > commands.schema.json")
@click.argument("topic", type=click.Choice(SCHEMAS))
@click.option("--openapi", is_flag=True, help="Print the components of an OpenAPI 3.1 document instead.")
@report_errors
def schema(topic: str, openapi: bool) -> None:
    """Print JSON Schemas of commands, events, rules, errors or tables.

    The schema is generated from the types of this version, in the dialect 2020-12, with its keys sorted.
    """
    from forecast_ledger.replay.reference import schema as schemas

    print(schemas.text(schemas.openapi(topic) if openapi else schemas.schema(topic)))


@click.command(name="help", epilog="Example: forecast-ledger help submit_forecast")
@click.argument("name", required=False)
@click.option("--markdown", is_flag=True, help="Print the page of a topic as Markdown.")
@report_errors
def help_(name: str | None, markdown: bool) -> None:
    """Explain a topic, command, event, refusal, rule, table or word.

    Without NAME, lists the topics.
    """
    from forecast_ledger.replay.reference import topics

    if markdown:
        if name is not None and name not in topics.TOPICS:
            fail(f"no topic named {name[:80]!r}; there are: {', '.join(topics.TOPICS)}", USAGE)
        page = topics.contents() if name is None else topics.page(name)
        print(page.as_markdown(), end="")
        return
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    if name is None:
        rows = tuple((topic, summary) for topic, (_, summary, _) in topics.TOPICS.items())
        last = "NAME can also be a command, an event, a refusal, a rule, a table, or any other name on these pages."
        print(as_text(["forecast-ledger help NAME", Table(("topic", "about"), rows), last], width))
        return
    if blocks := topics.look_up(name):
        print(as_text(blocks, width))
        return
    near = topics.nearest_name(name)
    fail(f"no help for {name[:80]!r}{f'; the nearest is {near}' * bool(near)}; `help` lists the topics", USAGE)


@click.command(name="rules", epilog="Example: forecast-ledger rules spot-peer --columns field,value")
@click.argument("rules", metavar="[PRESET|JSON|@FILE]", required=False)
@table_options
@report_errors
def rules_(rules: str | None, view: View) -> None:
    """List the presets of rules, or every field of one rule set.

    The preset, or a rule set of your own, is checked as by `open_contest`. `forecast-ledger help rules` has the values
    that each field can have.
    """
    from forecast_ledger.replay.reference.rule_fields import FIELD_COLUMNS, PRESET_COLUMNS, fields_of, presets

    if rules is None:
        emit(PRESET_COLUMNS, presets(), view, Look(keep=("preset",)))
    else:
        emit(FIELD_COLUMNS, fields_of(read_rules(rules)), view, Look(keep=("field", "value")))


def read_rules(text: str) -> RuleSet:
    """Return the rule set that a preset's name, a JSON object, or @FILE with one gives. A bad file is wrong usage."""
    from forecast_ledger.replay.explain.what_if import parse_rule_set

    if not text.startswith("@"):
        return parse_rule_set(text)
    path = text[1:]
    try:
        with Path(path).open("rb") as file:
            given = file.read(LARGEST_RULES + 1)
    except (OSError, ValueError) as error:
        fail(f"{path}: {getattr(error, 'strerror', None) or error}", USAGE)
    if len(given) > LARGEST_RULES:
        fail(f"{path}: a rule set has at most {LARGEST_RULES:,} bytes, and this file has more", USAGE)
    try:
        rules = given.decode("utf-8-sig")
    except UnicodeDecodeError:
        fail(f"{path}: not UTF-8", USAGE)
    if not rules.lstrip().startswith("{"):
        fail(f"{path}: not a JSON object; `forecast-ledger schema rules` describes a rule set", USAGE)
    return parse_rule_set(rules)
