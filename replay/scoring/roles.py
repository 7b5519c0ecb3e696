"""Which column of a table is what: by the names that such columns usually have, or as the caller says."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.replay.scoring.options import Options
from forecast_ledger.replay.scoring.tables import Table

# Role -> the names of its columns, those of a later group only if no column has one of an earlier group.
USUAL: dict[str, tuple[str, ...]] = {
    "question": (
        "question_id qid ifp_id market_id contract_id problem_id event_id item_id task_id",
        "question ifp market problem event item task statement claim",
        "question_title question_text q_text title",
        "id",
    ),
    "forecaster": (
        "forecaster forecaster_id forecaster_name forecaster_username",
        """user user_id userid user_name username
        participant participant_id participant_name player player_id player_name model model_id model_name bot agent
        agent_id agent_name expert expert_id respondent respondent_id analyst predictor member person who name email
        email_address""",
        "team team_id team_name organization source author",
    ),
    "time": (
        """made_at forecast_time forecast_date forecast_timestamp forecast_at forecasted_at fcast_date fcast_time
        prediction_date prediction_time predicted_at submitted_at submission_date submission_time""",
        "time date timestamp datetime at forecast_due_date start_time completion_time",
        "created_at created created_time",
        "reference_date origin_date",
    ),
    "quantile": ("quantile quantile_level tau",),
    "option": ("option option_name answer_option choice alternative candidate",),
    "probability": (
        "probability prob p probability_yes prob_yes p_yes forecast_probability predicted_probability forecast_prob",
        "forecast prediction predicted pred estimate credence confidence yes guess",
        "value",
    ),
    "value": ("value quantile_value forecast_value", "prediction forecast predicted estimate"),
    "outcome": (
        """outcome resolution answer result resolved_to resolved_value resolved_outcome actual truth ground_truth
        true_value label y_true correct_answer observed observation oracle_value happened came_true""",
        "y target value",
    ),
    "opens": ("opens opens_at open_time open_date opening_date opened_at date_start",),
    "closes": (
        """closes closes_at close_time close_date closing_date closing_time closed_at date_closed deadline
        question_close_time scheduled_close_time actual_close_time""",
    ),
    "kind": ("question_type qtype question_kind forecast_type", "type kind"),
    "title": ("question_title question_text q_text title question",),
}
_LISTED = 12
_OF_PROBABILITIES = {"probability", "option"}
OF_ANSWERS = ("question", "outcome", "opens", "closes", "title")
_GROUPS = {role: [{*group.split()} for group in groups] for role, groups in USUAL.items()}


class Found(NamedTuple):
    """The columns of a role: several for a question that is told by several. said: the caller named them."""

    columns: tuple[str, ...]
    said: bool


Roles = Mapping[str, Found]


def plain(name: str) -> str:
    """Return a name in the form of the usual names.

    >>> plain("Question ID"), plain("userName"), plain("P (yes)")
    ('question_id', 'user_name', 'p_yes')
    """
    divided = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", divided.lower()).strip("_")


def check_named(tables: Collection[Table], options: Options) -> None:
    """Refuse (ambiguous) a role that there is not, or a column that no table has."""
    every = [column for table in tables for column in table.columns]
    for role, columns in options.columns.items():
        if role not in USUAL:
            detail = f"there is no such role; there are: {', '.join(USUAL)}"
            raise Refused("ambiguous", "column", role, detail, remedy="name a role, as in --column forecaster=User")
        for column in columns:
            if column not in every:
                detail = f"no column has this name; the columns are: {listed(column, every)}"
                raise Refused("ambiguous", role, column, detail, remedy="correct the name after --column")


def roles_of(table: Table, roles: Collection[str], options: Options) -> dict[str, Found]:
    """Return the columns of a table that have one of these roles. Refuses: ambiguous (two columns may be one of them).

    A column has one role: the first, in the order of USUAL, whose names it has; one that the caller names has no other.
    """
    given = {role: tuple(each for each in options.columns.get(role, ()) if each in table.columns) for role in roles}
    found = {role: Found(columns, said=True) for role, columns in given.items() if columns}
    taken = {column for each in found.values() for column in each.columns}
    for role in USUAL:
        if role not in roles or role in options.columns or _is_of_other_form(role, found):
            continue
        candidates = _candidates(role, [name for name in table.columns if name not in taken])
        if len(candidates) > 1:
            detail = f"{table.name}: each of the columns {', '.join(map(repr, candidates))} may be the {role}"
            raise Refused("ambiguous", role, None, detail, remedy=f"name one: --column {role}={_shell(candidates[0])}")
        if candidates:
            found[role] = Found(tuple(candidates), said=False)
            taken.add(candidates[0])
    return found


def listed_columns(table: Table) -> str:
    """Return the columns of a table in words, to choose from.

    >>> from forecast_ledger.replay.scoring.tables import table_of_rows
    >>> listed_columns(table_of_rows([{"who": "ada", "p": 0.5}], "f"))
    "; the columns are 'who', 'p'"
    """
    names = [*map(repr, table.columns)]
    more = f" and {len(names) - _LISTED} more" * (len(names) > _LISTED)
    return f"; the columns are {', '.join(names[:_LISTED])}{more}"


def unnamed(table: Table, roles: Roles, needed: Sequence[str], likely: str = "") -> Refused:
    """Return the refusal of a table that lacks the columns of some needed roles; it names all of them.

    likely: the column that may have the first of them, "" if none may.

    >>> from forecast_ledger.replay.scoring.tables import table_of_rows
    >>> refused = unnamed(table_of_rows([{"wer": "ada", "p": 0.5}], "f"), {}, ["question", "outcome"])
    >>> print(refused)  # doctest: +NORMALIZE_WHITESPACE
    ambiguous: question: f: no column is known to have the question, the answer;
    name each: --column question=NAME --column outcome=NAME; the columns are 'wer', 'p'
    """
    missing = [role for role in needed if role not in roles]
    words = [{"outcome": "answer", "probability": "probability of a forecast"}.get(role, role) for role in missing]
    words[0] += f" (perhaps {likely!r})" if likely else ""
    detail = f"{table.name}: no column is known to have the {', the '.join(words)}"
    options = " ".join(f"--column {role}=NAME" for role in missing)
    remedy = f"name {'it' if len(missing) == 1 else 'each'}: {options}{listed_columns(table)}"
    return Refused("ambiguous", missing[0], None, detail, remedy=remedy)


def _is_of_other_form(role: str, found: Roles) -> bool:
    """Return whether a role is one of another form of forecast: quantiles have values, and no probabilities."""
    return role in _OF_PROBABILITIES if "quantile" in found else role == "value"


def _candidates(role: str, names: Sequence[str]) -> list[str]:
    for group in _GROUPS[role]:
        if found := [name for name in names if plain(name) in group]:
            return found
    return []


def _shell(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else f"'{name}'"
