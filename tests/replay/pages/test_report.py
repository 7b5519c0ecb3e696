"""Reports: pages that say what the tables say, whatever names a log has, and ask for nothing."""

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import json

from forecast_ledger import plot, report
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand, Range
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.columns import Contest
from forecast_ledger.projections.studies import grounds, intervals, rank_sets
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.cli import report as commands
from forecast_ledger.replay.cli.main import FINE, UNREADABLE, USAGE
from forecast_ledger.replay.pages import charts, contest_facts, page_parts, sections
from forecast_ledger.replay.pages.account_sections import account_parts, accounts
from forecast_ledger.replay.pages.charts import CHARTS
from forecast_ledger.replay.pages.pictures import Picture, names_axis, names_legend, specify, titled, to_svg, visible
from forecast_ledger.replay.pages.possible_ranks import PossibleRanks, board_finding, possible_ranks, who_may_be_first
from forecast_ledger.replay.pages.report import template_environment
from forecast_ledger.replay.pages.sections import _scale
from forecast_ledger.replay.reading import blocks
from forecast_ledger.replay.reading.replay import replay
from tests.replay.cli.test_main import run
from tests.support.given import asked, choices, contest, entry, exclusion, forecast, opened, resolution
from tests.support.logs import commands_of, light, written

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=http://127.0.0.1:9/x onerror=alert(1)>',
    "]]></svg><script>",
    "datum.value]; '\\u0022",
    "{{ 7 * 7 }}",
    "مرحبا بالعالم",
    "名" * 60,
    "x" * 120,
)
ANALYSIS = "forecast_ledger.projections.tables.analysis"
VOID = {"meta", "img", "br", "link", "input", "line", "path", "rect"}
RANGE = Range(lower=0, upper=4, levels=("0.5",), decimals=3, open_upper=True)


class Page(HTMLParser):
    """What a page has: elements, links within it, ids, addresses, and whether its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.texts: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name == "href":
                self.links.append(value or "")
            elif name in {"src", "action", "data", "poster", "xlink:href"}:
                self.addresses.append(value or "")
            assert not name.startswith("on")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element of a picture that is closed at once."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Check that the element that was opened last is closed."""
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)


def checked(text: str) -> Page:
    """Return a page that needs nothing from elsewhere, and whose links lead somewhere."""
    page = Page(text)
    assert page.open == []
    assert not {"script", "iframe", "object", "embed", "link", "img", "form"} & {*page.elements}
    assert page.addresses == []
    assert len({*page.ids}) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= {*page.ids}
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"url\((?!#)", text)
    return page


@pytest.fixture
def log(tmp_path: Path) -> Any:
    """The path of the log of a story, or of commands."""

    def told(story: str | Sequence[AnyCommand]) -> str:
        commands = map(light, commands_of(story) if isinstance(story, str) else story)
        return written(tmp_path / "season.db", commands)

    return told


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures, which take most of the time, are blank: for tests of what a page says beside them."""

    def to_svg(picture: Picture) -> str:
        assert json.encode(visible(picture.specification))
        return "<svg></svg>"

    monkeypatch.setattr(sections, "to_svg", to_svg)


def crowd(names: Sequence[str]) -> list[AnyCommand]:
    """A contest in which each of these participants has a forecast on each of three questions."""
    story: list[AnyCommand] = [contest(title="<b>Cup & saucer</b>", pool=100)]
    for question in ("q0", "q1", "q2"):
        chances = {who: f"0.{10 + number % 80}" for number, who in enumerate(names, start=1)}
        story += asked(question, chances, title=f"<i>{question}</i>")
    return story


@pytest.mark.parametrize("story", ["metaculus-2022", "arena-week", "question-groups", "brier-tables"])
def test_a_page_needs_nothing_else_and_is_the_same_each_time(story: str, log: Any, tmp_path: Path) -> None:
    """Every link leads to a place on the page, every element is closed, and the bytes do not change."""
    path, pages = log(story), [tmp_path / "a.html", tmp_path / "b.html"]
    for page in pages if story == "metaculus-2022" else pages[:1]:
        report(path, page)
    text = pages[0].read_text(encoding="utf-8")
    found = checked(text)
    assert not pages[1].exists() or text.replace("a.html", "b.html") == pages[1].read_text(encoding="utf-8")
    words = " ".join(" ".join(found.texts).split())
    season = replay(path)
    assert season.checkpoint.digest in words
    for row in season.table("leaderboard").rows():
        assert row["participant"] in words
    for row in season.table("intervals").rows():
        assert row["withheld"]  # there are fewer than 20 questions
        assert row["seed"] not in words  # and nothing that rests on samples
    for row in season.table("contests").rows():
        assert (row["title"] or f"Contest {row['contest']}") in words


@pytest.mark.usefixtures("undrawn")
def test_a_page_begins_with_what_it_claims_and_what_a_contest_asks(log: Any, tmp_path: Path) -> None:
    """Before who is first; and the title of a page with one contest stands once."""
    report(log(crowd(["ada", "bob"])), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    words = " ".join(checked(text).texts)
    parts = ("What this page claims:", "What it does not claim:", "questions is", "bob is first with", "State")
    assert [*map(words.index, parts)] == sorted(map(words.index, parts))
    assert text.count("&lt;b&gt;Cup &amp; saucer&lt;/b&gt;</bdi></h") == 1
    assert "In plain words" in words


def test_names_are_texts_wherever_they_are_shown(log: Any, tmp_path: Path) -> None:
    """In the board, in pictures, in headings: HTML, templates, Vega expressions and scripts stay text."""
    report(log(crowd(HOSTILE)), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    words = " ".join(checked(text).texts)
    for name in HOSTILE:
        assert name in words
    assert "<b>Cup & saucer</b>" in words
    assert "49" not in [part.strip() for part in words.split("\n")]


def test_long_boards_are_shown_whole_and_pictures_say_what_they_leave_out(log: Any, tmp_path: Path) -> None:
    """With 60 participants, the board has 60 rows, and the map of coverage the first 40.

    On the page this map is left out: coverage is the same on all questions, and the board has it. On paper the board
    ends after 40 rows, and sections of participants after 20; the page says so there.
    """
    path = log(crowd([f"p{number}" for number in range(60)]))
    report(path, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = checked(text)
    assert sum(each.startswith("contest-1-participant") for each in page.ids) == 2 * 60
    cover = CHARTS["coverage"].draw(replay(path).projections, "cup")
    assert cover is not None
    assert cover.note.endswith("The first 40 of 60 are shown.")
    assert "questions, in the order of their openings" not in text
    assert "20 more: <code>forecast-ledger table LOG leaderboard</code></p>" in text
    assert text.count('class="participant beyond"') == 60 - 20
    assert "Only the first 20 of 60 are compared, as if they had been named beforehand." in text


@pytest.mark.usefixtures("undrawn")
def test_what_a_page_leaves_out_is_counted_with_the_command_that_prints_it(
    log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions of a participant between the best and the worst, questions of a long list, sections, a picture."""
    for module in (page_parts, sections):
        monkeypatch.setattr(module, "MOST_PARTICIPANTS", 2)
    for module in (contest_facts, sections):
        monkeypatch.setattr(module, "MOST_LISTED", 2)
    monkeypatch.setattr(page_parts, "BEST", 1)
    report(log(crowd(["ada", "bob", "cy"])), tmp_path / "page.html")
    words = " ".join(" ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts).split())
    whole = "whoever has the log can print all: forecast-ledger table LOG participant_review"
    assert f"The best 1 and the worst 1 of 3 questions; {whole}" in words
    assert f"Not shown: sections about participants after the first 2 of 3; {whole}." in words
    every = whole.replace("participant_review", "questions")
    assert f"3: 3 resolved; from q0 to q2; {every}" in words
    assert "Forecasts of the consensus" not in words  # the picture's title
    few = f"it would be drawn from fewer than 5 forecasts; {whole.replace('participant_review', 'calibration')}"
    assert f"Not shown: how often what was forecast happened. Reason: {few}." in words


def test_the_command_for_a_picture_says_what_the_picture_leaves_out(log: Any, tmp_path: Path) -> None:
    """The picture itself has no words besides the names and numbers."""
    path = log(crowd([f"p{number}" for number in range(60)]))
    done = run("plot", path, "coverage", str(tmp_path / "coverage.svg"))
    assert "The first 40 of 60 are shown." in done.stderr
    done = run("plot", path, "calibration", str(tmp_path / "calibration.svg"))
    assert "The table calibration also has 60 others." in done.stderr


def test_a_line_of_which_some_points_are_drawn_says_so(
    log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the number of all; each line has its last point."""
    whole = plot(log("arena-week"), "profit", tmp_path / "profit.json", contest="week-1")
    monkeypatch.setattr(charts, "MOST_POINTS", 2)
    few = plot(tmp_path / "season.db", "profit", tmp_path / "profit.json", contest="week-1")
    assert f"Of {len(whole.rows)} changes of profit, {len(few.rows)} are drawn." in few.note
    assert len(few.rows) < len(whole.rows)
    assert "are drawn" not in whole.note


def test_a_scale_leaves_out_a_tenth_of_the_numbers_that_would_leave_the_others_no_room() -> None:
    """Only at an end where they are farther from the others than twice the room that these take; else none."""
    near = [float(number) for number in range(20)]
    assert _scale([*near, 58.0]) == (0.0, 18.0)  # 58 - 18 is more than 2 x (18 - 2)
    assert _scale([*near, 50.0]) == (0.0, 50.0)
    assert _scale([-1_000.0, -1_000.0, *near[:18], 1e6, 1e6]) == (0.0, 17.0)
    assert _scale([0.0, 1.0, 1e9]) == (0.0, 1e9)  # one of three is no tenth
    assert _scale([5.0, 5.0]) == (5.0, 5.0)


def test_an_end_beyond_a_scale_has_an_arrow_and_no_mark_where_the_scale_ends() -> None:
    """0.7768 is not drawn where 0.4 is."""

    def span(low: str, score: str, high: str) -> Any:
        return page_parts.span_cell({"score_low": low, "score": score, "score_high": high}, 0.2, 0.4, 4).span

    assert span("0.2", "0.3", "0.4") == (1, 50, 99)
    assert span("0.1", "0.3", "0.7768") == (0, 50, 100)
    assert span("0.7", "0.7768", "0.8") == (100, 100, 100)
    rows = [["a", blocks.Cell("a", span("0.3", "0.7768", "0.8"))], ["b", blocks.Cell("b", span("0.1", "0.3", "0.4"))]]
    drawn: Any = template_environment().get_template("blocks.html.jinja").module
    beyond, below = drawn.table_of(blocks.Table(["who", "interval"], rows), "").split("<svg")[1:]
    assert (beyond.count("<line"), beyond.count("M97 0"), beyond.count("M3 0")) == (1, 1, 0)
    assert (below.count("<line"), below.count("M97 0"), below.count("M3 0")) == (2, 0, 1)


@pytest.mark.usefixtures("undrawn")
def test_a_telephone_has_a_short_line_for_each_row_of_a_long_board(log: Any, tmp_path: Path) -> None:
    """A box shows all columns; a board of six rows needs none."""
    path = log([*crowd([f"p{number:02}" for number in range(7)]), exclusion(participant="p00", level="hidden")])
    for as_of, boxes in ((replay(path).checkpoint.position - 1, 1), (None, 0)):
        report(path, tmp_path / "page.html", as_of=as_of)
        assert (tmp_path / "page.html").read_text(encoding="utf-8").count('<input type="checkbox">') == boxes


def test_a_log_without_contests_has_a_page(log: Any, tmp_path: Path) -> None:
    """It says so little as there is."""
    report(log([]), tmp_path / "page.html")
    assert "0 contests" in " ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts)


def test_an_empty_contest_says_that_nothing_has_been_scored(log: Any, tmp_path: Path) -> None:
    """No pictures, and no board."""
    report(log([contest()]), tmp_path / "page.html")
    assert "Nothing has been scored" in " ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts)


def test_a_page_says_which_questions_count_as_ordered(log: Any, tmp_path: Path) -> None:
    """Questions that do not say are told from those without an order; of more than five, the others are counted."""
    rules = RuleSet(name="x", kernel="ordered_brier", period="covered", total="mean")
    asked: list[AnyCommand] = [choices(f"q{number}") for number in range(7)]
    asked += [choices("yes", ordered=True), choices("no", ordered=False), opened()]
    entries = [entry(question=name) for name in (*(f"q{number}" for number in range(7)), "yes", "no", "rain")]
    report(log([contest(rules=rules), *asked, *entries]), tmp_path / "page.html")
    texts = " ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts)
    assert "each of 7 questions (q0, q1, q2, q3, q4 and 2 more) does not say whether" in texts
    assert "; no says that its outcomes have no order" in texts
    assert "yes says" not in texts


@pytest.mark.usefixtures("undrawn")
def test_a_participant_sees_what_each_question_gained(log: Any, tmp_path: Path) -> None:
    """Of Brier scores .01 and .49 the median is .25: .24 is gained, and lost. A mean leaves out what was missed."""
    story: list[AnyCommand] = [contest(rules=RuleSet(name="x", kernel="brier", period="covered", total="mean"))]
    story += [opened(), opened("snow"), entry(), entry(question="snow"), forecast(probability="0.9")]
    story += [forecast(participant="bob", probability="0.3"), forecast("snow", "bob", probability="0.5")]
    report(log([*story, resolution(), resolution("snow")]), tmp_path / "page.html")
    words = " ".join(" ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts).split())
    assert "question score rank median gained coverage rain 0.0100 1 of 2 0.2500 0.2400 90% bob" in words
    assert "snow 0.2500 1 of 1 0.2500 0.0000 90% rain 0.4900 2 of 2 0.2500 -0.2400 90%" in words


@pytest.mark.usefixtures("undrawn")
def test_a_page_of_many_contests_computes_each_table_once(
    log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A season of thirteen contests would take thirteen times as long otherwise; so with the intervals of each."""
    asked: Counter[str] = Counter()
    plain = Projections.table

    def table(projections: Projections, name: str) -> Table:
        asked[name] += 1
        return plain(projections, name)

    def of_board(opened: Contest, *given: Any) -> Any:
        asked[f"intervals of {opened.opened.contest}"] += 1
        return intervals.intervals(opened, *given)

    monkeypatch.setattr(Projections, "table", table)
    monkeypatch.setattr(f"{ANALYSIS}.board_intervals", of_board)
    report(log("metaculus-2022"), tmp_path / "page.html")
    assert {"intervals of plain", "scores"} <= asked.keys()
    assert {*asked.values()} == {1}


@pytest.mark.usefixtures("little_is_enough")
def test_a_forecast_without_bounds_does_not_prevent_the_page(log: Any, tmp_path: Path) -> None:
    """Ten billion away from the answer, a score is beyond the sums of replicates; everything else is shown."""
    rules = RuleSet(name="far", quantile_kernel="pinball", total="mean", period="covered")
    story: list[AnyCommand] = [contest(rules=rules)]
    for name in (f"q{number:02}" for number in range(20)):  # with fewer, nothing is drawn
        story += [opened(name, kind="numeric", range=RANGE), entry(question=name)]
        story += [forecast(name, "ada", quantiles=[10**10]), forecast(name, "bob", quantiles=[3])]
        story.append(resolution(name, value=4))
    report(log(story), tmp_path / "page.html")
    words = " ".join(" ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts).split())
    assert "bob is first with 1, and ada second with 9,999,999,996 (lower is better)" in words
    assert "bob 1 1 90.0%" in words
    assert "9,999,999,996" in words
    for kind in ("board", "pairwise"):
        assert f"Not shown: {CHARTS[kind].words}. Reason: the scores are too large for sums in 64 bits." in words


@pytest.mark.usefixtures("undrawn")
def test_only_the_contests_that_are_named_are_shown(log: Any, tmp_path: Path) -> None:
    """In that order; one that is unknown is refused, and leaves the old page."""
    path, out = log("metaculus-2022"), tmp_path / "page.html"
    report(path, out, contests=["plain"])
    before = out.read_bytes()
    assert b"hidden-only" not in before
    with pytest.raises(Refused) as refused:
        report(path, out, contests=["plain", "nowhere"])
    assert (refused.value.code, out.read_bytes()) == ("unknown_contest", before)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_the_command_in_the_footer_makes_the_page(log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After more events, too."""
    path = log("metaculus-2022")
    monkeypatch.chdir(tmp_path)
    assert run("report", path, "page.html", "--contest", "plain").exit_code == FINE
    page = Path("page.html").read_text(encoding="utf-8")
    [said] = re.findall(r"<code>(forecast-ledger report [^<]*)</code>", page)
    written(path, [opened("later", id="later")])
    Path("page.html").unlink()
    assert run(*said.split()[1:]).exit_code == FINE
    assert Path("page.html").read_text(encoding="utf-8") == page


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders by contest, each with a log and the specifications of a report on the contest."""
    folders = {}
    for story, contest_id in (("metaculus-2022", "plain"), ("arena-week", "week-1")):
        folder = folders[contest_id] = tmp_path_factory.mktemp("reported")
        path = written(folder / "log.db", map(light, commands_of(story)))
        report(path, folder / "page.html", contests=[contest_id], specs=folder / "specs")
    return folders


@pytest.mark.parametrize("kind", CHARTS)
def test_a_picture_is_drawn_from_its_specification(kind: str, reported: dict[str, Path], tmp_path: Path) -> None:
    """As SVG, PNG and JSON, which is what `specs` of a report has, too."""
    contest_id = "week-1" if kind == "profit" else "plain"
    path = str(reported[contest_id] / "log.db")
    picture = plot(path, kind, tmp_path / "one.svg", contest=contest_id)
    drawn = to_svg(titled(picture))
    assert (tmp_path / "one.svg").read_text(encoding="utf-8") == drawn
    assert all(escape(word) in drawn for word in f"{picture.title} {picture.note}".split())
    if kind == "board":  # whatever the chart is, a PNG is drawn from its specification
        plot(path, kind, tmp_path / "one.png", contest=contest_id)
        assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    plot(path, kind, tmp_path / "one.json", contest=contest_id)
    whole = json.decode((tmp_path / "one.json").read_bytes())
    assert (whole["title"], whole["data"]) == (picture.title, json.decode(json.encode(picture.specification["data"])))
    there = reported[contest_id] / "specs" / f"contest-1-{kind}.vl.json"
    assert there.read_bytes() == (tmp_path / "one.json").read_bytes()


@pytest.mark.parametrize(
    ("name", "cut"), [("x" * 39, False), ("m" * 21, False), ("m" * 40, True), ("W" * 26, True), ("名" * 60, True)]
)
def test_a_name_that_is_cut_has_a_limit(name: str, cut: bool) -> None:
    """A picture is the same to the byte if every label has a limit of 240 pixels."""
    axis, legend = names_axis([{"participant": name}]), names_legend([name])
    encoding = {
        "y": {"field": "row", "type": "ordinal", "axis": axis},
        "color": {"field": "row", "type": "nominal", "legend": legend},
    }
    shown = Picture("", "", (), [], specify([{"row": 0}], mark="point", encoding=encoding))
    config = shown.specification["config"]
    limited = {part: config[part] | {"labelLimit": 240} for part in ("axis", "legend")}
    drawn = to_svg(shown)
    assert drawn == to_svg(shown._replace(specification=shown.specification | {"config": config | limited}))
    assert ("…" in drawn) == cut


def test_wrong_usage_is_said_in_one_line(log: Any, tmp_path: Path) -> None:
    """Another ending, several contests, nothing to draw."""
    path = log("metaculus-2022")
    result = run("plot", path, "board", str(tmp_path / "board.gif"))
    assert (result.exit_code, ".svg, .png, .json" in result.stderr) == (USAGE, True)
    result = run("plot", path, "board", str(tmp_path / "board.svg"))
    assert (result.exit_code != FINE, "hidden-only" in result.stderr, "plain" in result.stderr) == (True, True, True)
    result = run("plot", path, "profit", str(tmp_path / "profit.svg"), "--contest", "plain")
    assert (result.exit_code != FINE, "nothing to show as profit" in result.stderr) == (True, True)
    assert run("report", str(tmp_path / "none.db"), str(tmp_path / "page.html")).exit_code == UNREADABLE
    assert [each.name for each in tmp_path.iterdir() if each.suffix in {".svg", ".gif", ".html"}] == []


def test_the_command_lists_every_chart() -> None:
    """Its help is instant, so it does not import them."""
    assert {*CHARTS} < {*commands.KINDS}


def test_a_score_over_time_is_that_of_the_table(log: Any, tmp_path: Path) -> None:
    """Every point of the lines: B is first after each of three answers. A title says since when, if they came apart."""
    path = log("metaculus-2022")
    picture = plot(path, "score", tmp_path / "score.svg", contest="plain")
    table = [row for row in replay(path).table("score_over_time").rows() if row["contest"] == "plain"]
    shown = {(row["answered"], row["participant"]): (row["score"], row["rank"]) for row in picture.rows}
    assert shown == {(row["answered"], row["participant"]): (row["score"], row["rank"]) for row in table if row["rank"]}
    assert {each for each in shown.values() if each[1] == 1} == {shown[number, "B"] for number in (1, 2, 3)}
    assert picture.title == "Scores after each of 3 answers, in the order of their recording"  # nothing is between them
    since = charts._leading({"A": 0, "B": 1}, 3, 1)
    assert since == "B has led since answer 1 of 3, in the order in which answers were recorded"


def test_the_band_of_a_calibration_picture_is_that_of_the_table(log: Any, tmp_path: Path) -> None:
    """Of the consensus, whose forecasts the picture shows, at each probability that it gave; two can tell little."""
    path = log("metaculus-2022")
    picture = plot(path, "calibration", tmp_path / "calibration.svg", contest="plain")
    table = replay(path).table("corp_band").rows()
    names = "probability", "recalibrated", "band_low", "band_high"
    mine = [row for row in table if (row["contest"], row["participant"]) == ("plain", "[consensus]")]
    drawn = picture.specification["vconcat"][0]["layer"][0]["data"]["values"]
    assert [(row["p"], row["happened"], row["low"], row["high"]) for row in drawn] == [
        tuple(float(row[name]) for name in names) for row in mine
    ]
    assert drawn
    assert picture.title == "Forecasts of the consensus: 2 questions, too few to say whether they are calibrated"


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("story", "differ"), [("question-groups", True), ("metaculus-2022", False)])
def test_a_board_of_means_over_different_questions_says_so(story: str, differ: bool, log: Any, tmp_path: Path) -> None:
    """Bo left out questions, and totals are means. Coverages differ in the other story too, but its totals are sums."""
    path = log(story)
    report(path, tmp_path / "page.html")
    words = " ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts)
    assert ("A score is the mean over the questions that a participant forecast on" in words) == differ
    assert ("adjusted rank" in words) == differ
    assert "“Possible ranks” are those" not in words  # a set needs 20 questions
    assert "too few to tell" in words  # there are fewer than 20 questions
    for row in replay(path).table("adjusted_scores").rows() if differ else ():
        assert row["by"] != "contest" or row["rank"] is None or row["adjusted_score"][:5] in words


def test_a_note_explains_shares_that_are_blank_and_ranks_without_intervals() -> None:
    """Ada is first in 30% of the samples; in the others bob, for whom no interval and no share is printed."""
    ada = {"replicates": 1999, "first": "0.3", "rank": 2, "rank_set_low": 1, "withheld": ""}
    bob = ada | {"first": None, "rank": 1, "withheld": "heavy_tails"}
    told = {"interval", "possible ranks", "first in samples"}
    silent, ranks = "somebody is first for whom no share is printed", "they turn the signs of whole clusters"
    for rows, expected in (([ada, bob], True), ([ada | {"first": "1.0"}, ada], False)):
        board = [{"attainable": "1", "completion": done} for done in ("2/2", "1/2" if expected else "2/2")]
        possible = PossibleRanks(rows, False, {}, "", "")
        note = " ".join(sections._board_note(RuleSet(name="x", total="sum"), board, possible, told, grounds.WITHHELD))
        assert (silent in note, ranks in note, "who took part" in note) == (expected,) * 3
        assert "“First in samples” is" in note


@pytest.mark.usefixtures("little_is_enough", "undrawn")
@pytest.mark.parametrize("differ", [False, True])
def test_a_page_explains_sets_of_ranks(differ: bool, log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all have the same questions, of scores; else of adjusted scores.

    Bob is worse than ada on each question by more than questions differ; cy, who is as good as ada, has all but one.
    """
    given = {
        f"q{number}": {"ada": f"0.8{number}", "bob": f"0.1{number}", "cy": f"0.8{9 - number}"} for number in range(9)
    }
    if differ:
        del given["q0"]["cy"]
    computed = Counter[str]()

    def of_board(opened: Contest, *given: Any) -> Any:
        computed[opened.opened.contest] += 1
        return rank_sets.board_rank_sets(opened, *given)

    monkeypatch.setattr(f"{ANALYSIS}.board_rank_sets", of_board)
    words = means_over(given, log, tmp_path)
    assert computed == ({} if differ else {"cup": 1})  # none that are not shown
    assert "“Possible ranks” are those that a test of all participants at once cannot rule out" in words
    assert ("everybody's rank by expected score is among them" in words) != differ
    assert ("By adjusted scores, any of 2 participants may be the best: ada and cy" in words) == differ
    assert ("none is shown where an adjusted score has no interval" in words) == differ
    assert ("that rests on samples but possible ranks, are of scores that are not adjusted" in words) == differ
    assert ("first in samples" in words.lower()) != differ  # it is of scores over different questions
    dependent = "for example, are hardly so, and then intervals and possible ranks are too narrow"
    picture = plot(tmp_path / "season.db", "board", tmp_path / "board.json")
    often = f"{dependent}, and differences are called significant too often."
    assert often in words
    assert dependent in picture.note
    projections = replay(tmp_path / "season.db").projections
    ranks = possible_ranks(projections, "cup", [*projections.table("intervals").rows()])
    without = dict.fromkeys(("score_low", "score_high", "first", "prize_low", "prize_high")) | {
        "withheld": "heavy_tails"
    }
    ranks = ranks._replace(rows=[row | without for row in ranks.rows])
    assert often in sections._board(projections, "cup", "cup", ranks).note  # sets alone need it as well
    monkeypatch.setattr(charts, "possible_ranks", lambda *_: ranks)
    bare = charts.board(projections, "cup")
    assert bare is not None
    assert dependent in bare.note


@pytest.mark.usefixtures("little_is_enough", "undrawn")
@pytest.mark.parametrize("kernel", ["brier", "ln"])
def test_the_picture_of_a_board_names_those_whom_its_page_names(
    kernel: Literal["brier", "ln"], log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brier scores on easy and hard questions are 0.00 and 0.16 for cy, 0.09 and 0.25 for ada and bob.

    Ada forecast on five easy questions and a hard one, with a mean of 0.70 / 6, cy on five hard ones and an easy one,
    with 0.80 / 6, and bob on all, with 1.70 / 10. On each common question cy is better by 0.09. Logarithmic scores of
    ten clusters have no interval, so there are no adjusted sets, and none of scores are shown in their place.
    """
    monkeypatch.setattr(grounds, "LEAST_HEAVY", {grounds.ERRORS: 400, "logarithmic scores": 75})
    given = {f"easy{number}": {"ada": "0.7", "bob": "0.7"} for number in range(5)}
    given |= {f"hard{number}": {"cy": "0.6", "bob": "0.5"} for number in range(5)}
    given["easy0"]["cy"], given["hard0"]["ada"] = "1" if kernel == "brier" else "0.9", "0.5"
    words = means_over(given, log, tmp_path, kernel)
    picture = plot(tmp_path / "season.db", "board", tmp_path / "board.json")
    withheld = "No possible ranks are shown: scores are means over different questions, and no adjusted score has an"
    if kernel == "brier":
        assert picture.title == "By adjusted scores, only cy may be the best; ada is first on the board"
        beginning = words.split("State")[0]
        assert "cy is first, with forecasts on 6. By adjusted scores, only cy may be the best" in beginning
        assert withheld not in words + picture.note
    else:
        assert picture.title == "ada is first on the board"
        assert "may be the best" not in words
        assert withheld in words
        assert withheld in picture.note
        assert "intervals and possible ranks are too narrow" not in words + picture.note  # none are shown
        for said in (words, picture.note):
            assert "make most of the sum (fewer than 75 for logarithmic scores)." in said
    assert "ada is first with" in words
    assert ("“Possible ranks” are those that a test" in words) == (kernel == "brier")
    assert (
        "Scores after each of 10 answers, in the order of their recording" in words
    )  # no leader of different questions
    scaled = charts.board(replay(tmp_path / "season.db").projections, "cup", "on this scale")
    assert scaled is not None
    assert scaled.title == picture.title.replace("on the board", "on this scale")


@pytest.mark.parametrize(("bob", "differ"), [("q0 q1", False), ("q0 q2", True)])
def test_as_many_questions_need_not_be_the_same(bob: str, differ: bool, log: Any) -> None:
    """Ada forecast on the first two of three questions, and bob on two, too."""
    story: list[AnyCommand] = [contest(rules=RuleSet(name="x", kernel="brier", total="mean", period="covered"))]
    for question, first in (("q0", {"ada": "0.5"}), ("q1", {"ada": "0.5"}), ("q2", {})):
        story += asked(question, first | ({"bob": "0.5"} if question in bob else {}))
    assert possible_ranks(replay(log(story)).projections, "cup", []).differ == differ


@pytest.mark.usefixtures("undrawn")
def test_a_page_says_who_is_first_with_the_effects_of_questions_removed(log: Any, tmp_path: Path) -> None:
    """Ada forecast on the easy question alone, where cy's 0.0025 beats her 0.01; cy's mean is 0.32 all the same.

    Cy is better than bob on both questions, and than ada on the common one, so every fit has cy first.
    """
    given = {"easy": {"ada": "0.9", "bob": "0.8", "cy": "0.95"}, "hard": {"bob": "0.1", "cy": "0.2"}}
    words = means_over(given, log, tmp_path)
    assert "ada is first with 0.0100, and bob second with 0.4250" not in words  # cy is second, with (.0025 + .64) / 2
    assert "ada is first with 0.0100, and cy second with 0.3212 (lower is better)" in words
    effects = (
        "with additive effects of questions removed, cy is first, with forecasts on 2, but 2 questions are too few to "
        "tell the first from the second"
    )
    order = (
        "The order of scores compares different questions, and is no order of skill: ada, the first, "
        "forecast on 1 of 2 questions"
    )
    assert f"{order}; {effects}. ada is first" in words
    assert "There are no intervals: scores in fewer than 20 clusters" in words
    assert "intervals are of 95%" not in words
    assert "an arrow points" not in words
    assert "that rests on samples" not in words
    assert "The seed of the samples" not in words


def test_a_second_rank_that_is_shared_is_no_one_participants(log: Any, tmp_path: Path) -> None:
    """Of three forecasts of what happens, two are the same."""
    words = means_over({"q": {"ada": "0.9", "bob": "0.8", "cy": "0.8"}}, log, tmp_path)
    assert "ada is first with 0.01000, and 2 share the second rank, with 0.04000 (lower is better)" in words


def test_a_first_rank_by_take_is_not_said_to_be_by_score(log: Any, tmp_path: Path) -> None:
    """The rules of metaculus-2022 rank by take."""
    report(log("metaculus-2022"), tmp_path / "page.html")
    words = " ".join(" ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts).split())
    assert "B is first with 1.853, and A second with -0.229 (higher is better; ranks are by take), but" in words
    assert "; a take grows as e^score, so that a small lead may win most; prizes say nothing of how sure" in words
    assert not re.search(r" -0(\.0+)? ", words)  # 0 has no sign


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("leads", ["ada", "cy"])
def test_who_forecast_on_few_questions_leads_nothing(leads: str, log: Any, tmp_path: Path) -> None:
    """Ada forecast on the easy question alone, and eve on the hard one, where she is better than bob and cy.

    A participant with one score has no part in the effects, which follow from bob and cy. The adjusted score of eve is
    the best, and cy's is better than bob's. Without ada, cy is first, with (3 x 0.49 + 0.81) / 4 = 0.57; eve has 0.64.
    """
    given = {"easy": {"ada": "0.99"} if leads == "ada" else {}, "hard": {"eve": "0.2"}, "q2": {}, "q3": {}}
    given = {question: own | {"bob": "0.2", "cy": "0.3"} for question, own in given.items()}
    given["hard"] |= {"bob": "0.1", "cy": "0.1"}
    words = means_over(given, log, tmp_path)
    assert f"{leads} is first with" in words
    told = (
        "ada, the first, forecast on only 1 of 4 questions; with additive effects of questions removed, cy is first of "
        "the 2 who forecast on at least half of them, with forecasts on 4, but 4 questions are too few to tell the "
        "first from the second"
    )
    assert (told in words) == (leads == "ada")
    assert ("with additive effects of questions removed" in words) == (leads == "ada")


def means_over(
    given: dict[str, dict[str, str]], log: Any, folder: Path, kernel: Literal["brier", "ln"] = "brier"
) -> str:
    """The words of a page of mean scores. given: chances by question and participant; all happen."""
    floor = int(kernel == "ln")  # a logarithm needs one
    rules = RuleSet(
        name="x", kernel=kernel, sampling="spot", period="covered", total="mean", least_probability_ppm=floor
    )
    story: list[AnyCommand] = [contest(rules=rules)]
    for question, chances in given.items():
        story += asked(question, chances)
    path = folder / "page.html"
    report(log(story), path)
    return " ".join(" ".join(checked(path.read_text(encoding="utf-8")).texts).split())


@pytest.mark.usefixtures("undrawn")
def test_a_page_of_accounts_adds_up(log: Any, tmp_path: Path) -> None:
    """Of each account, cash and positions are the total, and the gains of its positions are its profit."""
    path = log("arena-week")
    projections = replay(path).projections
    for contest_id in ("week-1", "week-2"):
        ranking, *others = account_parts(projections, contest_id)
        names = [*ranking.table.columns]
        rows = [dict(zip(names, (cell.replace(",", "") for cell in row), strict=True)) for row in ranking.table.rows]
        for row in rows:
            assert Decimal(row["cash"]) + Decimal(row["positions"]) == Decimal(row["total"])
        for row, section in zip(rows, accounts(projections, contest_id, "c"), strict=True):
            gains = [Decimal(cells[-1].replace(",", "")) for cells in section.table.rows]
            assert (section.name, sum(gains)) == (row["participant"], Decimal(row["profit"]))
            assert gains == sorted(gains, reverse=True)
        assert [part.title for part in others] == ["Positions held"] * (contest_id == "week-2") + [
            "Trades and payments"
        ]
    report(path, tmp_path / "page.html")
    words = " ".join(" ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts).split())
    assert "family aurora, release aurora-1 has rank 1 with a profit of 2,360.00; 4 positions in 3 decisions." in words
    assert "only one participant made forecasts besides trading, so there are no scores to compare" in words
    assert "bo 2026-03-10 09:05 reversed launch yes - - -25,000.00 -1,000.00" in words.replace("\u00a0", " ")
    findings = re.findall("<strong>(.*?)</strong>", (tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "cy has the largest profit so far, 2,500.00, since 2026-03-15; ada has -110.00." in findings
    assert "Questions 5: 1 annulled, 4 resolved" in words
    assert "Not shown" not in words  # no picture of forecasts is missing where there is no board of them
    assert "merger Will the merger be approved? Neither yes nor no: paid half and half resolved by payouts" in words


@pytest.mark.usefixtures("undrawn")
def test_the_list_of_contests_has_the_main_finding_of_each_whole(log: Any, tmp_path: Path) -> None:
    """A full stop in a name does not end it."""
    story = crowd(["Dr. Who", "Mr. X"])
    story[3:3] = [contest("other", pool=1), entry("other", "q0")]  # after the first question
    path = log(story)
    report(path, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    [listed] = re.findall(r"<nav.*?</nav>", text, re.DOTALL)
    [best, second] = replay(path).table("leaderboard").only("contest", "cup").rows()
    assert f"{best['participant']} is first with" in listed
    assert f"and {second['participant']} second with" in listed
    assert "but 3 questions are too few to tell the first from the second" in listed


@pytest.mark.usefixtures("undrawn")
def test_contests_of_the_same_questions_name_each_other(log: Any, tmp_path: Path) -> None:
    """Other rules over the same questions are another contest."""
    path = log("metaculus-2022")
    report(path, tmp_path / "page.html")
    words = " ".join(" ".join(checked((tmp_path / "page.html").read_text(encoding="utf-8")).texts).split())
    facts = replay(path).projections.facts
    assert facts.contests["plain"].entries.keys() == facts.contests["hidden-only"].entries.keys()
    told = re.findall(r"Contest (\S+) State .*? Same questions in (.*?), under other rules", words)
    assert told == [("hidden-only", "plain"), ("plain", "hidden-only")]
    assert "where their boards agree, that is no second evidence" in words


def test_a_finding_says_how_sure_it_is() -> None:
    """Who may be the best by the sets of ranks, ranks that are shared, nobody with a rank."""

    def row(name: str, rank: int | None, best: int | None) -> dict[str, Any]:
        return {"participant": name, "rank": rank, "rank_set_low": best}

    def finding(*rows: dict[str, Any]) -> str:
        return board_finding(rows, PossibleRanks(rows, False, {}, who_may_be_first(rows), ""))

    assert finding(row("a", 1, None), row("b", 2, None)) == "a is first"
    assert finding(row("a", 1, 1), row("b", 2, 2)) == "Only a may be the best; a is first"
    shared = [row("a", 1, 1), row("b", 1, 1), row("c", 3, 1)]
    found = "Any of 3 participants may be the best: a, b and c; 2 participants share the first rank"
    assert finding(*shared) == found
    many = finding(row("a", 1, 1), *(row(f"p{number}", 2, 1) for number in range(1_200)))
    assert many == "Any of 1,201 participants may be the best; a is first"
    untold = "Only a may be the best of the 1 with scores in at least 20 clusters; 2 have fewer"
    assert finding(row("a", 2, 1), row("b", 1, None), row("c", 3, None)) == (
        f"{untold}, the first of the board among them, and are not tested; b is first"
    )
    assert finding(row("a", 1, 1), row("b", 2, None), row("c", 3, None)) == f"{untold}, and are not tested; a is first"
    adjusted, board = [row("a", 2, 1), row("b", 1, None), row("c", 3, None)], [row("c", 1, None), row("a", 2, None)]
    assert who_may_be_first(adjusted, board=board) == (
        f"{untold}, the first of the board and the first by adjusted score among them, and are not tested"
    )
    assert finding(row("a", None, None)) == "Nobody has a rank"
    assert finding(row("a", 1, 1)) == "a is the only one with a rank"
