"""The sections of a report: the board of each contest, its questions, its pictures and its participants."""

from collections.abc import Collection, Mapping, Sequence

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.core.values import format_count
from forecast_ledger.ledger.model.rules import TAG, RuleSet
from forecast_ledger.projections.boards.leaderboard import TAKES
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.studies.clusters import cluster_of
from forecast_ledger.projections.studies.grounds import reasons_of
from forecast_ledger.projections.studies.resampling import LEAST_CLUSTERS
from forecast_ledger.projections.tables.catalogue import Projections, Row
from forecast_ledger.replay.pages.account_sections import account_parts, accounts
from forecast_ledger.replay.pages.charts import FEWEST
from forecast_ledger.replay.pages.contest_facts import MOST_LISTED, contest_facts, shows_board
from forecast_ledger.replay.pages.page_parts import (
    MOST_PARTICIPANTS,
    NONE,
    Contest,
    Figure,
    Part,
    Participant,
    about,
    alike,
    beyond,
    by_participant,
    digits_of,
    ends_of,
    in_table,
    kinds_of,
    number_text,
    printed_table,
    question_name,
    questions_table,
    range_text,
    reviewed_ends,
    row_anchor,
    short_table,
    span_cell,
    subsequent_part,
)
from forecast_ledger.replay.pages.pictures import Picture, leaderboard_rows, percent, to_svg, without_intervals
from forecast_ledger.replay.pages.possible_ranks import (
    DOUBT,
    PossibleRanks,
    board_finding,
    known_intervals,
    possible_ranks,
)
from forecast_ledger.replay.pages.study_charts import REPORTED
from forecast_ledger.replay.reading.blocks import Cell, Number, Table
from forecast_ledger.replay.reading.board_notes import counted_answers, seal_notes, sentences
from forecast_ledger.replay.reading.studies import sample_notes

CROWDED, MOST_BEYOND = 2, 10  # a scale leaves out up to one in ten numbers that would make it two times longer
SAMPLED = {"interval", "possible ranks", "first in samples", "prize interval"}  # columns that rest on samples
ALL_BUT_NOTHING = 0.995  # a share that is 100% in print
_BOARD = "forecast-ledger table LOG leaderboard"  # it has all rows
LARGEST_WRITTEN = 10**9  # a larger number has an exponent


def leaderboard_part(projections: Projections, name: str, anchor: str) -> tuple[Part, list[str]]:
    """Return the leaderboard of scores, with intervals if there are any, and what it shows, the main thing first."""
    board = leaderboard_rows(projections, name)
    ranks = possible_ranks(projections, name, known_intervals(projections, name))
    fair = _with_effects_removed(board, ranks)
    findings = _first_two(projections, name, board, "" if fair else ranks.sure) or [board_finding(board, ranks)]
    findings = [*fair, *findings]
    findings[0] += _too_few(board, ranks.rows)
    findings += _paid(projections, name, board) + ([] if fair else _few_forecasts(board))
    if ranks.rows:
        return _board(projections, name, anchor, ranks), findings
    prize = ["prize"] * any(float(row["prize"] or 0) for row in board)
    columns = ("participant", "rank", "score", "coverage", *prize)
    cells = short_table(kinds_of(projections, "leaderboard"), board, columns)
    return Part("Leaderboard", "", "Leaderboard, best first", cells, source=_BOARD), findings


def _score_digits(projections: Projections, name: str) -> int:
    """Return how many decimals the scores of a board have, wherever they are on the page."""
    if intervals := known_intervals(projections, name):
        return digits_of(_scale(_drawn_numbers(intervals)))
    return digits_of([float(row["score"]) for row in leaderboard_rows(projections, name)])


def _drawn_numbers(intervals: Sequence[Row]) -> list[float]:
    return [float(row[end]) for row in intervals for end in ("score", "score_low", "score_high") if row[end]]


def _first_two(projections: Projections, name: str, board: Sequence[Row], sure: str) -> list[str]:
    """Say which scores the first two of a board have, after `sure`, who may be the best, if that is known.

    Nothing is said if these ranks are shared.
    """
    rows = [row for row in board if row["rank"] in {1, 2}]
    if [row["rank"] for row in rows[:2]] != [1, 2]:
        return []
    digits, rules = _score_digits(projections, name), projections.facts.contests[name].opened.rules
    (who, mine), (other, second) = ((row["participant"], number_text(row["score"], digits)) for row in rows[:2])
    better = "lower" if lower_is_better(rules) else "higher"
    by = "; ranks are by take" * (rules.rank_by == "take")
    others = f"{other} second" if len(rows) == 2 else f"{len(rows) - 1:,} share the second rank,"
    said = f"{who} is first with {mine}, and {others} with {second} ({better} is better{by})"
    return [*filter(None, [sure]), said]


def _paid(projections: Projections, name: str, board: Sequence[Row]) -> list[str]:
    """Say which share of the pool the largest prize is, if there are prizes, and what it does not say."""
    prizes = {row["participant"]: float(row["prize"] or 0) for row in board}
    whole = sum(prizes.values())
    if not whole:
        return []
    most = max(prizes, key=lambda who: prizes[who])
    opened = projections.facts.contests[name].opened
    won = f"{most} wins most: {prizes[most]:,.2f} of {whole:,.2f} {opened.currency}".rstrip()
    power = [base for base in ("e^", "2^") if base in TAKES[opened.rules.take].words]
    grows = f"; a take grows as {power[0]}score, so that a small lead may win most" if power else ""
    return [f"{won}{grows}; prizes say nothing of how sure a lead is"]


def _with_effects_removed(board: Sequence[Row], ranks: PossibleRanks) -> list[str]:
    """Say who leads if the effects of questions are removed, and how sure that is, where the first missed some."""
    adjusted = ranks.adjusted
    first = next((row for row in board if row["rank"] == 1), None)
    if first is None or not adjusted:
        return []
    done, every = map(int, first["completion"].split("/"))
    enough = [row for row in adjusted.values() if 2 * row["questions"] >= every]
    best = min(enough, key=lambda row: row["rank"], default=first)
    leads = first["participant"] in {row["participant"] for row in enough if row["rank"] == best["rank"]}
    if len(enough) < FEWEST or (done == every and leads):
        return []
    only = "only " * (2 * done < every)
    among = f" of the {len(enough):,} who forecast on at least half of them" * (len(enough) < len(adjusted))
    removed = f"{best['participant']} is first{among}, with forecasts on {best['questions']:,}"
    words = (
        "The order of scores compares different questions, and is no order of skill: "
        f"{first['participant']}, the first, forecast on {only}{done:,} of {format_count(every, 'question')}; with "
        f"additive effects of questions removed, {f'it is first as well{among}' if leads else removed}"
    )
    return [". ".join(filter(None, [words, ranks.sure]))]


def _few_forecasts(board: Sequence[Row]) -> list[str]:
    """Say if the first of a board forecast on less than half of the questions."""
    first = next((row for row in board if row["rank"] == 1), None)
    done, every = (0, 0) if first is None else map(int, first["completion"].split("/"))
    if first is None or 2 * done >= every:
        return []
    return [f"{first['participant']} forecast on less than half of the questions: {done:,} of {every:,}"]


def _too_few(board: Sequence[Row], intervals: Sequence[Row]) -> str:
    """Say at the end of a sentence that nothing tells how sure an order is, if so."""
    ranked = [row for row in board if row["rank"] is not None]
    if len(ranked) < FEWEST:
        return ""
    every = int(ranked[0]["completion"].split("/")[1])
    if every < LEAST_CLUSTERS:
        few = f"{format_count(every, 'question')} {'is' if every == 1 else 'are'} too few"
        return f", but {few} to tell the first from the second"
    untold = intervals and all(row["rank_set_low"] is None for row in intervals)
    return ", but no possible ranks say how sure that is" if untold else ""


def _board(projections: Projections, name: str, anchor: str, ranks: PossibleRanks) -> Part:
    """Return the leaderboard with intervals."""
    board, intervals, adjusted = leaderboard_rows(projections, name), ranks.rows, ranks.adjusted
    numbers = _drawn_numbers(intervals)
    scale, digits = _scale(numbers), _score_digits(projections, name)
    columns: dict[str, Sequence[str]] = {
        "participant": [
            Cell(row["participant"], link=row_anchor(anchor, "participant", number)) for number, row in enumerate(board)
        ],
        Number("rank"): [NONE if row["rank"] is None else str(row["rank"]) for row in board],
        Number("score"): [number_text(row["score"], digits) for row in board],
        "interval": [span_cell(sure, *scale, digits) for sure in intervals],
        Number("possible ranks"): [range_text(sure["rank_set_low"], sure["rank_set_high"]) for sure in intervals],
        Number("first in samples"): [
            "" if sure["first"] is None or ranks.differ else percent(float(sure["first"])) for sure in intervals
        ],
        Number("coverage"): [percent(float(row["coverage"])) for row in board],
    }
    if adjusted:
        adjusted_rows = [adjusted.get(row["participant"]) for row in board]
        columns[Number("adjusted score")] = [
            number_text(row["adjusted_score"], digits) if row else NONE for row in adjusted_rows
        ]
        columns[Number("adjusted rank")] = [str(row["rank"]) if row else NONE for row in adjusted_rows]
    if any(row["take"] is not None for row in board):
        takes = [float(row["take"] or 0) for row in board]
        decimals = digits_of(takes)
        columns[Number("take")] = [
            f"{take:.3e}" if take >= LARGEST_WRITTEN else f"{take:,.{decimals}f}" for take in takes
        ]
    if any(float(row["prize"] or 0) for row in board):
        columns[Number("prize")] = [f"{float(row['prize'] or 0):,.2f}" for row in board]
        columns[Number("prize interval")] = [
            range_text(*(sure[end] and f"{float(sure[end]):,.2f}" for end in ("prize_low", "prize_high")))
            for sure in intervals
        ]
    shown = {heading: cells for heading, cells in columns.items() if any(cells)}
    rules = projections.facts.contests[name].opened.rules
    note = _board_note(rules, board, ranks, shown, reasons_of(rules, projections.scored(name)))
    if "interval" in shown and scale != (min(numbers), max(numbers)):
        low, high = (f"{end:,.{digits}f}" for end in scale)
        note[0] += f" Lines are drawn from {low} to {high}; an arrow points to what is beyond."
    sampled = SAMPLED - {"possible ranks"} if ranks.differ else SAMPLED  # those of adjusted scores have another seed
    seed, claimed = intervals[0]["seed"] if sampled & {*shown} else "", SAMPLED & {*shown}
    if "possible ranks" in shown and (words := alike(board, shown["possible ranks"])):
        note.append(words)
        del shown["possible ranks"]
    cells = Table([*shown], [[*row] for row in zip(*shown.values(), strict=True)])
    note.append(sentences(sample_notes(projections, name)))
    if claimed:
        note[-1] += f" {_independence(projections, name)}"
    return Part("Leaderboard", "\n".join(note), "Leaderboard, best first", cells, seed, _BOARD)


def _board_note(
    rules: RuleSet, board: Sequence[Row], ranks: PossibleRanks, shown: Collection[str], reasons: Mapping[str, str]
) -> list[str]:
    """Explain the columns of a leaderboard, in paragraphs.

    shown: the columns, by heading. reasons: why there is no interval, as of `reasons_of`.
    """
    level, names = percent(rules.level_ppm, 10**6), {*shown}
    without = without_intervals(ranks.rows, reasons)
    paragraphs = (
        _interval_words(level, ranks.rows, names) + without if "interval" in names else without,
        _rank_words(level, ranks) if "possible ranks" in names else [ranks.withheld],
        _score_words(rules, board, ranks, names),
    )
    return [*filter(None, (" ".join(words) for words in paragraphs))]


def _interval_words(level: str, intervals: Sequence[Row], names: Collection[str]) -> list[str]:
    """Say what an interval is, and who is first in samples. level: of the rules. names: the columns."""
    what = (
        f"The questions are resampled {intervals[0]['replicates']:,} times, some of them several times and others not. "
        f"An interval has a little more than the middle {level} of a participant's scores in these samples; in "
        "simulated contests, such intervals of 95% held the expected score in 93% to 96%."
    )
    if "first in samples" not in names:
        return [what]
    first = (
        "“First in samples” is the share of the samples in which a participant has rank 1; it is no probability of "
        "being the best."
    )
    words = [what, first]
    silent = any(sure["first"] is None and sure["rank"] is not None for sure in intervals)
    if silent and sum(float(sure["first"] or 0) for sure in intervals) < ALL_BUT_NOTHING:
        words.append("In the other samples, somebody is first for whom no share is printed.")
    return words


def _rank_words(level: str, ranks: PossibleRanks) -> list[str]:
    """Say what possible ranks are. level: of the rules."""
    what = (
        f"“Possible ranks” are those that a test of all participants at once cannot rule out: in {level} of such "
        f"contests, everybody's rank by expected {'adjusted ' * ranks.differ}score is among them."
    )
    words = [what]
    if ranks.differ:
        words.append(
            "They are of adjusted scores, as ranks of scores over different questions are no order of skill; none is "
            f"shown where an adjusted score has no interval ({in_table('adjusted_intervals')})."
        )
    elif any(sure["withheld"] and sure["rank_set_low"] is not None for sure in ranks.rows):
        words.append(
            "Where an interval is not shown, possible ranks and tests of pairs may still hold: they turn the signs of "
            "whole clusters of differences, which asks not that clusters be many, but that a difference of any size "
            "be as likely in one direction as in the other, which skewed scores break."
        )
    return words


def _score_words(rules: RuleSet, board: Sequence[Row], ranks: PossibleRanks, names: Collection[str]) -> list[str]:
    """Say what scores are not, and explain the other columns."""
    words = []
    if ranks.adjusted:
        words.append(
            "A score is the mean over the questions that a participant forecast on, and some questions are easier than "
            "others: the adjusted score is the mean after the effect of each question is removed, which is by how much "
            f"it raises or lowers the score of whoever forecasts on it ({in_table('adjusted_scores')})."
        )
        if {*names} & SAMPLED - {"possible ranks"}:
            but = " but possible ranks" * ("possible ranks" in names)
            words.append(f"Intervals, and all else that rests on samples{but}, are of scores that are not adjusted.")
    if rules.total == "sum" and len({row["completion"] for row in board}) > 1:
        words.append(
            "A score is a sum, to which a question without a forecast adds nothing: "
            "the order depends on who took part, too."
        )
    if "take" in names and "prize" in names:
        words.append("A take is the number that prizes are in proportion to.")
    if float(board[0]["attainable"]) < 1:
        attainable = percent(float(board[0]["attainable"]))
        words.append(
            f"Coverage is of the whole time in which questions were open; on average, {attainable} of it was scored."
        )
    return words


def _independence(projections: Projections, name: str) -> str:
    """Say what a cluster of a contest is, and what the numbers that rest on samples assume of clusters."""
    contest = projections.facts.contests[name]
    field, level = contest.opened.rules.clusters[0], contest.opened.rules.level_ppm
    shared = sorted({cluster_of(projections.facts.questions[code], field) for code in contest.entries} - {""})
    what = f"A cluster is all questions of one {field.removeprefix(TAG)}, such as {shared[0]}. " if shared else ""
    sure, wrong = (percent(share, 10**6) for share in (level, 10**6 - level))
    return f"{what}{sure} and {wrong} hold if clusters are independent of each other; {DOUBT}."


def _scale(numbers: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest of some numbers, without a few that would leave the others no room.

    >>> _scale([1.0, 2.0, 3.0]), _scale([*map(float, range(20)), 1e9])
    ((1.0, 3.0), (0.0, 18.0))
    """
    ordered, few = sorted(numbers), len(numbers) // MOST_BEYOND
    low, high = ordered[0], ordered[-1]
    near, far = ordered[few], ordered[-1 - few]
    room = CROWDED * (far - near)
    return (near if near - low > room else low), (far if high - far > room else high)


_LEAST = {  # forecasts of a picture, and the table that has all
    "calibration": (5, "calibration"),
    "pit": (LEAST_CLUSTERS, "pit_counts"),
    "intervals": (LEAST_CLUSTERS, "interval_coverage"),
}
_REVIEWED = (
    "Each table has the questions on which a participant gained most and least: “gained” is by how much the score is "
    "better than “median”, the median of all participants' scores on the question."
)
FORECAST_CHARTS = {
    "board",
    "score",
    "pairwise",
    "calibration",
    "coverage",
    "pit",
    "intervals",
    "relative_skill",
    "sharpness",
    "horizon",
    "location",
    "log_scale",
}


def contest_section(
    projections: Projections, name: str, anchor: str, same: Sequence[str] = ()
) -> tuple[Contest, dict[str, Picture]]:
    """Return the section of a contest, and its pictures by kind. Raises Unavailable: pictures cannot be drawn.

    same: other contests with the same questions.
    """
    pictures, left_out = _pictures(projections, name)
    [row] = projections.rows_of("contests", name)
    traded, has_board = name in projections.traded, shows_board(projections, name)
    ranking, *others = account_parts(projections, name) if traded else [None]
    parts = [] if ranking is None else [ranking]
    findings = ["Nothing has been scored"]
    if has_board:
        part, findings = leaderboard_part(projections, name, anchor)
        parts.append(part)
    if traded and "profit" in pictures:
        findings = [pictures["profit"].title]
    if notes := seal_notes(projections, name):
        findings = [sentences(notes[:1]).removesuffix("."), *findings]
    parts += subsequent_part(projections, name)
    parts += _questions_part(projections, name) + [part for part in others if part is not None]
    figures = [
        Figure(picture.title, picture.note, to_svg(picture), printed_table(picture.columns, picture.rows))
        for kind, picture in pictures.items()
        if kind not in {"board", "prizes"}  # they are in the board's own rows
        and not _says_little(kind, picture)
        and (has_board or kind not in FORECAST_CHARTS)
    ]
    people = accounts(projections, name, anchor) if traded else []
    if traded:
        left_out += beyond(len(projections.rows_of("arena_leaderboard", name)), "accounts", "positions")
    if has_board:
        people += _participants(projections, name, anchor)
        left_out += beyond(len(leaderboard_rows(projections, name)), "participants", "participant_review")
    for kind, (least, table) in _LEAST.items():
        if has_board and kind in pictures and _says_little(kind, pictures[kind]):
            few = f"it would be drawn from fewer than {least} forecasts; {in_table(table)}"
            left_out.append(f"Not shown: {REPORTED[kind].words}. Reason: {few}.")
    facts = contest_facts(projections, row)
    if same:
        facts.insert(3, ("Same questions", f"in {listed('', same)}, under other rules"))
    title = row["title"] or f"Contest {name}"
    reviewed = _REVIEWED if has_board else ""
    asked = [projections.facts.questions[code] for code in projections.facts.contests[name].entries]
    section = Contest(anchor, title, about(asked), findings, left_out, facts, parts, figures, reviewed, people)
    return section, pictures


def _questions_part(projections: Projections, name: str) -> list[Part]:
    """Return the questions of a contest with their answers, if they are few."""
    questions = {projections.facts.questions[code].question for code in projections.facts.contests[name].entries}
    if not 0 < len(questions) <= MOST_LISTED:
        return []
    rows = [row for row in projections.table("questions").rows() if row["question"] in questions]
    for row in rows:
        is_paid = row["state"] == "resolved" and row["outcome"] is None and row["value"] is None
        row["answer"] = "by payouts" if is_paid else row["value"] or row["outcome"]
    columns = ["question", *["title"] * any(row["title"] for row in rows), "state", "answer"]
    kinds = kinds_of(projections, "questions") | {"answer": "text", "counted": "text"}
    counted = counted_answers(projections.facts, projections.facts.contests[name])
    for row in rows:
        row["counted"] = counted.get(row["question"], "")
    note = ""
    if counted:
        columns.append("counted")
        note = "“State” and “answer” are of now; “counted” is the answer that the sealed board rests on, if it changed."
    return [Part("Questions", note, "Questions", short_table(kinds, rows, columns))]


def _pictures(projections: Projections, name: str) -> tuple[dict[str, Picture], list[str]]:
    """Return the pictures of a contest by kind, and why others are left out: a contest is too large for some tables."""
    pictures: dict[str, Picture] = {}
    left_out = []
    for kind, chart in REPORTED.items():
        try:
            picture = chart.draw(projections, name)
        except Refused as error:
            left_out.append(f"Not shown: {chart.words}. Reason: {error.detail}.")
        else:
            pictures |= {} if picture is None else {kind: picture}
    return pictures, left_out


def _says_little(kind: str, picture: Picture) -> bool:
    """Return whether a page is better without a picture, because it is drawn from few numbers."""
    if kind in _LEAST:
        forecasts = max if kind == "intervals" else sum  # its rows count the same forecasts again
        return forecasts(float(row["n"]) for row in picture.rows) < _LEAST[kind][0]
    if kind != "coverage":
        return False
    varied = {(row["participant"], row["coverage"]) for row in picture.rows}  # else the board's own column has it
    return len(varied) == len({row["participant"] for row in picture.rows})


def _participants(projections: Projections, name: str, anchor: str) -> list[Participant]:
    """Return a section for each row of the board: the questions on which most was gained and lost, and the coverage."""
    board = leaderboard_rows(projections, name)[:MOST_PARTICIPANTS]
    shown = {row["participant"] for row in board}
    reviewed = reviewed_ends(projections, name, shown)
    scored = by_participant(projections, "scores", name, shown - {*reviewed})
    sign = 1 if lower_is_better(projections.facts.contests[name].opened.rules) else -1
    named = {question.question: question_name(question) for question in projections.facts.questions}
    sections, of_board = [], _score_digits(projections, name)
    for number, row in enumerate(board):
        who, of_scores = row["participant"], scored.get(row["participant"], [])
        counted, every = reviewed.get(who, ([], 0))
        rows = counted or sorted(of_scores, key=lambda each: sign * float(each["score"]))
        done, all_questions = map(int, row["completion"].split("/"))
        rank = "has no rank" if row["rank"] is None else f"has rank {row['rank']}"
        words = (
            f"{rank} with a score of {number_text(row['score'], of_board)}; forecasts on {done:,} of "
            f"{format_count(all_questions, 'question')}, coverage {percent(float(row['coverage']))} of "
            f"{percent(float(row['attainable']))} attainable"
        )
        words += f"; excluded: {row['excluded']}." if row["excluded"] else "."
        ends, caption = ends_of(
            rows, "questions", *(("participant_review", every) if counted else ("scores", len(rows)))
        )
        table = questions_table(ends, named, bool(counted))
        sections.append(Participant(row_anchor(anchor, "participant", number), who, words, caption, table))
    return sections
