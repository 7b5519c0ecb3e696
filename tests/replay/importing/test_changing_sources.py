"""Sources that change: whatever the copies before said, the ledger's boards are those of the last copy alone."""

import csv
import io
import json
from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.follow_copy import follow_copy
from forecast_ledger.replay.importing.kinds import KINDS
from forecast_ledger.replay.importing.question_forecasts import BEFORE_CHANGE, OTHER_OPTIONS, Following
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import LeftOut, carried
from forecast_ledger.replay.writing import append
from forecast_ledger.replay.writing.append import append_batches
from tests.support.effort import LONG, times
from tests.support.sources import import_into, tables, ticking

ASKED = {"a": ("fred", ["2026-03-08"]), "b": ("manifold", ["2026-03-08", "2026-03-15"])}  # of ForecastBench
PEOPLE = ("ada", "bo", "cy")
LATE = "2026-12-01T00:00:00Z"  # the instant of imports, after every close
Content = dict[str, Any]  # what a source says: see the functions that draw it


def written(path: Path, header: str, rows: list[list[Any]]) -> None:
    """Write a CSV, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    csv.writer(text).writerows([header.split(","), *rows])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")


def day(number: int) -> str:
    """A day of March 2026 as a download writes it."""
    return f"2026-03-{number:02} 00:00:00+00:00"


def seconds(number: int) -> int:
    """A day of March 2026 in seconds since 1970."""
    return read_instant(f"2026-03-{number:02}T00:00:00Z") // 10**6


def chance(random: Random) -> str:
    """A probability, in one of the forms in which it may be written."""
    return random.choice(["0.2", "0.20", "0.9", "0.5", "5e-1", "0.35"])


class Download:
    """Metaculus: questions with times and an answer; forecasts with starts and ends. One person changes the name."""

    kind = "metaculus"
    questions = "Question ID,Question Title,Question Type,Default Project,Open Time,Scheduled Close Time"
    forecasts = "Question ID,Forecaster ID,Forecaster Username,Start Time,End Time,Probability Yes"

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content: Content = {name: self.question() for name in ("1", "2")}
        self.first = PEOPLE[0]

    def question(self) -> Content:
        """One that is open from the 1st, to the 11th perhaps, and what is forecast on it."""
        return {"closes": 11, "closed": None, "answer": "", "known": None, "made": {who: self.made() for who in PEOPLE}}

    def made(self) -> list[list[Any]]:
        """Forecasts in order of time: start, chance, and an end before the next start or none."""
        starts = sorted(self.random.sample(range(1, 10), self.random.randint(0, 3)))
        return [[start, chance(self.random), self.random.choice([None, None, start + 1])] for start in starts]

    def change(self) -> None:
        """Change what the source says in one place."""
        random, question = self.random, self.random.choice([*self.content.values()])
        what = random.choice(
            ["made", "made", "made", "answer", "answer", "known", "closes", "closed", "chance", "name"]
        )
        if what == "name":
            self.first = random.choice([PEOPLE[0], "a new name"])
        elif what == "made":
            question["made"][random.choice(PEOPLE)] = self.made()
        elif what == "chance":
            for each in question["made"][random.choice(PEOPLE)][-1:]:
                each[1] = chance(random)
        else:
            drawn: dict[str, list[Any]] = {
                "answer": ["", "yes", "no", "annulled"],
                "known": [None, 6, 10, 12],
                "closes": [9, 11, 13],
                "closed": [None, 5, 8],
            }
            question[what] = random.choice(drawn[what])

    def write(self, folder: Path) -> Path:
        """Write the two files of a download."""
        questions, forecasts = [], []
        for name, each in self.content.items():
            closed = None if each["closed"] is None or each["closed"] >= each["closes"] else day(each["closed"])
            known = each["known"] or each["closes"]
            answer = [each["answer"], day(known)] if each["answer"] else ["", ""]
            questions.append([name, "Rain", "binary", "cup", day(1), day(each["closes"]), closed, *answer])
            last = min(each["closes"], each["closed"] or 31, known if each["answer"] else 31)
            for number, who in enumerate(PEOPLE):
                for start, number_text, end in (made for made in each["made"][who] if made[0] < last):
                    ends = "" if end is None else day(end)
                    forecasts.append(
                        [name, number, who if number else self.first, day(start), ends, number_text, "", ""]
                    )
        written(
            folder / "question_data.csv",
            f"{self.questions},Actual Close Time,Resolution,Resolution Known Time",
            questions,
        )
        header = f"{self.forecasts},Probability Yes Per Category,Continuous CDF"
        written(folder / "forecast_data.csv", header, forecasts)
        return folder


def of_levels(levels: str, values: str) -> list[tuple[str, str, str]]:
    """Rows of quantiles."""
    return [("quantile", *pair) for pair in zip(levels.split(), values.split(), strict=True)]


def of_samples(*values: str) -> list[tuple[str, str, str]]:
    """Rows of samples."""
    return [("sample", str(number), value) for number, value in enumerate(values)]


THREE = "0.1 0.5 0.9"
SAID_IN_A_HUB = [
    [of_levels(THREE, "10 20 30")],
    [of_levels("0.1 0.50 9e-1", "10.0 20 3e1"), of_samples("5", "20", "40")],
    [of_levels(THREE, "5 20 40"), of_samples("40", "5.0", "2e1"), [("median", "NA", "20")]],
    [of_levels(f"{THREE} 0.25", "0 1 2 0.5"), [("median", "", "20.0"), ("mean", "NA", "21")]],
    [of_levels(f"0.25 {THREE}", "0.5 0 1 2"), of_samples("7", "8")],
    [[("mean", "NA", "21.0")]],
    [],
]


class Options(Download):
    """Metaculus: a question whose options change: `c` is added, and perhaps `b` is removed after that."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content = {"3": {**self.question(), "added": None, "removed": None}}

    def change(self) -> None:
        """Change the forecasts, the answer, the name of a forecaster, or what the options are from a day on."""
        random, question = self.random, self.content["3"]
        what = random.choice(["made", "made", "chance", "answer", "options", "options", "name"])
        if what in {"made", "chance"}:
            who = random.choice([*question["made"]])
            made = self.made() if what == "made" else [*question["made"][who][:-1], *self.made()[-1:]]
            question["made"][who] = [each for _, each in sorted({each[0]: each for each in made}.items())]
        elif what == "answer":
            question["answer"] = random.choice(["", "a", "other", "annulled"])
        elif what == "name":
            who, *_ = random.sample([*question["made"]], 1)
            question["made"] = {
                f"{name} again" if name == who else name: made for name, made in question["made"].items()
            }
        elif question["added"] is None:
            question["added"] = random.choice([3, 5])
        else:
            question["removed"] = random.choice([None, 7])

    def write(self, folder: Path) -> Path:
        """Write the two files of a download, made on the 12th."""
        [question] = self.content.values()
        since = {1: ["a", "b", "other"]}
        if question["added"] is not None:
            since[question["added"]] = ["a", "b", "c", "other"]
            if question["removed"] is not None:
                since[question["removed"]] = ["a", "c", "other"]
        every = ["a", "b", "c", "other"] if len(since) > 1 else ["a", "b", "other"]
        history = repr([(day(number), names) for number, names in since.items()])
        answer = [question["answer"], day(question["closes"])] if question["answer"] else ["", ""]
        row = ["3", "Who", "multiple_choice", "cup", day(1), day(question["closes"]), repr(every), history, *answer]
        header = "Question ID,Question Title,Question Type,Default Project,Open Time,Scheduled Close Time"
        columns = "MC Options (All),MC Options History,Resolution,Resolution Known Time,Actual Close Time"
        written(folder / "question_data.csv", f"{header},{columns}", [[*row, ""]])
        forecasts = []
        for number, (who, made) in enumerate(question["made"].items()):
            for start, text, end in made:
                now = since[max(first for first in since if first <= start)]
                chances = {name: (1 - float(text)) / (len(now) - 1) for name in now} | {"a": float(text)}
                cell = repr([chances.get(name) for name in every])
                forecasts.append(["3", number, who, day(start), "" if end is None else day(end), "", cell, ""])
        header = f"{self.forecasts},Probability Yes Per Category,Continuous CDF"
        written(folder / "forecast_data.csv", header, forecasts)
        (folder / "README.md").write_text("exported on 2026-03-12 00:00:00+00:00", encoding="utf-8")
        return folder


class Hub:
    """A hub: quantiles, samples, medians and means of three models on two places, and the values that were observed."""

    kind = "hubverse"
    places = ("US", "01")
    header = "reference_date,target,horizon,location,output_type,output_type_id,value"
    truth = "reference_date,target,horizon,location,output_type,output_type_id,oracle_value"

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content: Content = {
            "made": {f"x-{who}": {place: self.rows() for place in self.places} for who in PEOPLE},
            "truth": dict.fromkeys(self.places),
            "zero": True,  # whether places are written with the zero before them
        }

    def rows(self) -> list[tuple[str, str, str]]:
        """Output type, id and value of some rows, in one of the forms in which they may be written, or none."""
        return [row for said in self.random.choice(SAID_IN_A_HUB) for row in said]

    def change(self) -> None:
        """Change what the source says in one place; a model without a row has no file."""
        random, place = self.random, self.random.choice(self.places)
        self.content["zero"] ^= random.random() < 0.2
        if random.random() < 0.3:
            self.content["truth"][place] = random.choice([None, "20", "25", "20.0"])
        else:
            self.content["made"][random.choice([*self.content["made"]])][place] = self.rows()

    def spelled(self, place: str) -> str:
        """A place, perhaps as a number is written."""
        return place if self.content["zero"] else place.lstrip("0")

    def write(self, folder: Path) -> Path:
        """Write a hub with a round, whose files are there if they have a row."""
        ids = {"target": ["hosp"], "horizon": [0], "location": [*self.places], "reference_date": ["2026-03-07"]}
        ids_of: dict[str, dict[str, Any]] = {
            "quantile": {"output_type_id": {"required": [0.1, 0.5, 0.9], "optional": [0.25]}},
            "sample": {"output_type_id_params": {"min_samples_per_task": 1, "max_samples_per_task": 3}},
            "median": {"output_type_id": {"required": None}},
            "mean": {"output_type_id": {"required": None}},
        }
        outputs = {name: {**each, "value": {"type": "double", "minimum": 0}} for name, each in ids_of.items()}
        target = {"target_id": "hosp", "target_name": "hosp", "target_keys": {"target": "hosp"}}
        task = {
            "task_ids": {name: {"required": None, "optional": values} for name, values in ids.items()},
            "output_type": outputs,
            "target_metadata": [target],
        }
        due = {"relative_to": "reference_date", "start": -6, "end": -3}
        asked = {"round_id_from_variable": True, "round_id": "reference_date", "model_tasks": [task]}
        (folder / "hub-config").mkdir(parents=True)
        (folder / "hub-config/tasks.json").write_text(json.dumps({"rounds": [asked | {"submissions_due": due}]}))
        (folder / "hub-config/admin.json").write_text("{}")
        for model, rows in self.content["made"].items():
            lines = [
                ["2026-03-07", "hosp", 0, self.spelled(place), *row] for place, said in rows.items() for row in said
            ]
            if lines or model == "x-cy":  # one file stays, empty
                written(folder / f"model-output/{model}/2026-03-07-{model}.csv", self.header, lines)
        observed = [
            ["2026-03-07", "hosp", 0, self.spelled(place), "quantile", "NA", value]
            for place, value in self.content["truth"].items()
            if value is not None
        ]
        elsewhere = ["2026-03-07", "hosp", 0, "99", "quantile", "NA", 1]  # a table without rows takes nothing back
        written(folder / "target-data/oracle-output.csv", self.truth, [*observed, elsewhere])
        return folder


class Sets:
    """ForecastBench: a round of a question of a data set and a market, forecast sets and a resolution set.

    What is said of each is a list: it is repeated in other digits, on another date or in another set, and it may
    contradict itself, so that it does not count.
    """

    kind = "forecastbench"

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content: Content = {
            "made": {who: {name: self.made() for name in ASKED} for who in PEOPLE},
            "answers": {name: [] for name in ASKED},
        }

    def made(self) -> list[str]:
        """What is said of a forecast: nothing, something, it again, or something else."""
        said = chance(self.random)
        return self.random.choice([[], [said], [said], [said, said], [said, "0.77"], ["0.5", "5e-1", "0.50"]])

    def change(self) -> None:
        """Change what the source says in one place."""
        random, name = self.random, self.random.choice([*ASKED])
        if random.random() < 0.3:
            self.content["answers"][name] = random.choice(
                [[], ["0"], ["1"], ["1.0", "1"], ["0.25"], ["null"], ["null", "null"], ["0", "1"], ["null", "1"]]
            )
        else:
            self.content["made"][random.choice(PEOPLE)][name] = self.made()

    def rows(self, name: str, field: str, said: list[str]) -> list[str]:
        """The rows that say something of a question, with its dates in turn."""
        source, dates = ASKED[name]
        return [
            f'{{"id": "{name}", "source": "{source}", "resolution_date": "{dates[number % len(dates)]}", '
            f'"resolved": true, "{field}": {value}}}'
            for number, value in enumerate(said)
        ]

    def write(self, folder: Path) -> Path:
        """Write the sets of a round; of the rows about one forecast, those after the second are in another set."""
        folder.mkdir()
        due = {"forecast_due_date": "2026-03-01", "question_set": "2026-03-01-llm.json"}
        asked = [
            {"id": name, "source": source, "question": name, "resolution_dates": dates if source == "fred" else "N/A"}
            for name, (source, dates) in ASKED.items()
        ]
        (folder / "q.json").write_text(json.dumps({**due, "questions": asked}))
        (folder / "q-human.json").write_text(json.dumps({**due, "questions": asked[1:]}))
        always = {name: ["0.5"] for name in ASKED}  # a round without forecasts takes none back
        for who, made in {**self.content["made"], "always": always}.items():
            rows = {name: self.rows(name, "forecast", said) for name, said in made.items()}
            head = json.dumps({**due, "organization": "org", "model": who})[:-1]
            for file, part in (("", slice(0, 2)), (" again", slice(2, None))):
                texts = [text for each in rows.values() for text in each[part]]
                if not texts:
                    continue  # a set without forecasts takes nothing back
                (folder / f"{who}{file}.json").write_text(f'{head}, "forecasts": [{", ".join(texts)}]}}')
        answers = [
            text for name, said in self.content["answers"].items() for text in self.rows(name, "resolved_to", said)
        ]
        answers.append(
            '{"id": "c", "source": "infer", "resolution_date": "2026-03-08", "resolved": false, "resolved_to": 0.5}'
        )
        (folder / "r.json").write_text(f'{json.dumps(due)[:-1]}, "resolutions": [{", ".join(answers)}]}}')
        return folder


class Markets:
    """Polymarket: two markets of yes and no and one of two names, each with a price history.

    A market is closed, and opened again; its state and its prices say how it ended.
    """

    kind = "polymarket"
    names = ("1", "2", "3")

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content: Content = {
            name: {"ends": 11, "closed": None, "status": "resolved", "paid": ["1", "0"], "prices": self.prices()}
            for name in self.names
        }

    def prices(self) -> list[list[Any]]:
        """Days and prices, some of them the same in other digits, or of the same day."""
        days = sorted(self.random.choices(range(1, 14), k=self.random.randint(1, 4)))
        return [[number, chance(self.random)] for number in days]

    def change(self) -> None:
        """Change what the source says in one place."""
        random, market = self.random, self.content[self.random.choice(self.names)]
        drawn: dict[str, Callable[[], Any]] = {
            "prices": self.prices,
            "ends": lambda: random.choice([9, 11, 13]),
            "closed": lambda: random.choice([None, 5, 8, 14]),
            "status": lambda: random.choice(["resolved", "resolved", "", "proposed"]),
            "paid": lambda: random.choice([["1", "0"], ["0", "1"], ["0.5", "0.50"], ["0.003", "0.997"], ["0", "0"]]),
        }
        what = random.choice(["prices", "prices", *drawn])
        market[what] = drawn[what]()

    def write(self, folder: Path) -> Path:
        """Write the markets in pages of two, and a file for each history, the second one by the other token."""
        folder.mkdir()
        records = [self.record(name, each) for name, each in self.content.items()]
        (folder / "markets.json").write_text(json.dumps(records[:2]))
        (folder / "events.jsonl").write_text(json.dumps({"title": "A game", "slug": "game", "markets": records[2:]}))
        for name, each in self.content.items():
            points = ", ".join(f'{{"t": {seconds(number)}, "p": {text}}}' for number, text in each["prices"])
            (folder / f"{name}00{int(name == '2')}.json").write_text(f'{{"history": [{points}]}}')
        return folder

    def record(self, name: str, said: Content) -> Content:
        """A market as the API answers it."""
        ended = {"closed": True, "closedTime": day(said["closed"])} if said["closed"] else {"closed": False}
        return {
            "id": name,
            "question": "Rain",
            "outcomes": '["Owls", "Foxes"]' if name == "3" else '["Yes", "No"]',
            "outcomePrices": json.dumps(said["paid"]),
            "clobTokenIds": json.dumps([f"{name}000", f"{name}001"]),
            "startDate": day(1),
            "endDate": day(said["ends"]),
            "umaResolutionStatus": said["status"],
            **ended,
        }


class Bets:
    """Manifold: a market of yes and no, one of two answers of which one is right, and one of two that may both be.

    Two people bet, one of whom changes the name; the bets of a market are in one file, the newest first.
    """

    kind = "manifold"
    names = ("1", "2", "3")
    answers = ("a", "b")

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content: Content = {
            name: {"closes": 11, "resolved": None, "as": "YES", "bets": self.bets()} for name in self.names
        }
        self.content["who"] = "ada"

    def bets(self) -> list[list[Any]]:
        """Days, users, the chance after each, and what kind of bet it is."""
        kinds = ["", "", "", "redemption", "rested", "empty"]
        draw = self.random.choice
        return [
            [number, draw("xy"), chance(self.random), draw(kinds)]
            for number in sorted(self.random.choices(range(1, 14), k=self.random.randint(0, 4)))
        ]

    def change(self) -> None:
        """Change what the source says in one place."""
        random, market = self.random, self.content[self.random.choice(self.names)]
        drawn: dict[str, Callable[[], Any]] = {
            "bets": self.bets,
            "closes": lambda: random.choice([9, 11, 13]),
            "resolved": lambda: random.choice([None, 5, 8, 14]),
            "as": lambda: random.choice(["YES", "NO", "MKT", "CANCEL"]),
        }
        what = random.choice(["bets", "bets", *drawn, "who"])
        if what == "who":
            self.content["who"] = random.choice(["ada", "adele"])
        else:
            market[what] = drawn[what]()

    def write(self, folder: Path) -> Path:
        """Write the markets, the bets of each, of which one only opens the market, and the users."""
        folder.mkdir()
        markets = [self.market(name) for name in self.names]
        (folder / "markets.json").write_text(json.dumps({"data": markets}))
        (folder / "users.jsonl").write_text(json.dumps({"id": "x", "username": self.content["who"]}))
        for name in self.names:
            self.write_bets(folder / f"bets {name}.json", name)
        return folder

    def write_bets(self, path: Path, name: str) -> None:
        """Write the bets of a market, the newest first."""
        last, texts = {"a": "0.5", "b": "0.5"}, [self.bet(name, 1, "z", "0.5", "0.5", isAnte=True)]
        for number, (at, user, after, kind) in enumerate(self.content[name]["bets"]):
            amounts: dict[str, Content] = {"redemption": {"isRedemption": True}, "empty": {"amount": 0}, "": {}}
            extra = amounts.get(kind, {"limitProb": 0.5, "fills": [{"timestamp": 1000 * seconds(at + 1)}]})
            if name == "1":
                texts.append(self.bet(name, at, user, last["a"], after, **extra))
                last["a"] = after
                continue
            for answer, then in (("a", after), ("b", str(1 - Decimal(after)))):
                group = {"answerId": answer, "betGroupId": str(number)}
                texts.append(self.bet(name, at, user, last[answer], then, **group, **extra))
                last[answer] = then
        path.write_text(f"[{', '.join(reversed(texts))}]")

    def bet(self, market: str, at: int, user: str, before: str, after: str, **extra: Any) -> str:
        """A bet; chances stay as they are written."""
        said = {"contractId": market, "userId": user, "createdTime": 1000 * seconds(at), "amount": 5} | extra
        return f'{json.dumps(said)[:-1]}, "probBefore": {before}, "probAfter": {after}}}'

    def market(self, name: str) -> Content:
        """A market as the API answers it."""
        said = self.content[name]
        ended = {"isResolved": bool(said["resolved"]), "closeTime": 1000 * seconds(said["closes"])}
        share = {"resolution": said["as"], "resolutionProbability": 0.25}
        if said["resolved"]:
            ended |= share | {"resolutionTime": 1000 * seconds(said["resolved"])}
        common = {"id": name, "question": "Rain?", "createdTime": 1000 * seconds(1), **ended}
        if name == "1":
            return common | {"outcomeType": "BINARY", "mechanism": "cpmm-1"}
        other = {"YES": "NO", "NO": "YES"}.get(said["as"], said["as"])
        answers = [
            {"id": "a", "text": "Owls"} | (share if said["resolved"] else {}),
            {"id": "b", "text": "Foxes"}
            | ({"resolution": other, "resolutionProbability": "0.75"} if said["resolved"] else {}),
        ]
        kind = {"outcomeType": "MULTIPLE_CHOICE", "mechanism": "cpmm-multi-1", "shouldAnswersSumToOne": name == "2"}
        return common | kind | {"answers": answers}


class Candlesticks:
    """Kalshi: two markets with trades and candlesticks, and results that the markets or settlements say."""

    kind = "kalshi"
    names = ("A", "B")

    def __init__(self, random: Random) -> None:
        self.random = random
        self.content: Content = {
            name: {"closes": 11, "result": "", "settled": "", "trades": self.prices(0), "sticks": self.prices()}
            for name in self.names
        }

    def prices(self, least: int = 1) -> list[list[Any]]:
        """Days and prices, the newest first; a market without any takes nothing back."""
        days = sorted(self.random.choices(range(1, 14), k=self.random.randint(least, 3)), reverse=True)
        return [[number, chance(self.random)] for number in days]

    def change(self) -> None:
        """Change what the source says in one place."""
        random, market = self.random, self.content[self.random.choice(self.names)]
        drawn: dict[str, Callable[[], Any]] = {
            "trades": lambda: self.prices(0),
            "sticks": self.prices,
            "closes": lambda: random.choice([9, 11, 13]),
            "result": lambda: random.choice(["", "yes", "no", "scalar", "void"]),
            "settled": lambda: random.choice(["", "", "yes", "no", "void"]),
        }
        what = random.choice(["trades", "sticks", *drawn])
        market[what] = drawn[what]()

    def write(self, folder: Path) -> Path:
        """Write the markets with their event, a file of trades, one of candlesticks and one of settlements."""
        folder.mkdir()
        said = self.content
        markets = [self.market(name) for name in self.names]
        trades = [
            {"ticker": name, "created_time": day(number), "yes_price_dollars": text}
            for name in self.names
            for number, text in said[name]["trades"]
        ]
        sticks = [
            {
                "market_ticker": name,
                "candlesticks": [
                    {"end_period_ts": seconds(number), "price": {"close_dollars": text}}
                    for number, text in said[name]["sticks"]
                ],
            }
            for name in self.names
        ]
        settled = [
            {"ticker": name, "market_result": said[name]["settled"]} for name in self.names if said[name]["settled"]
        ]
        event = {"event_ticker": "E", "title": "Weather", "markets": markets}
        contents = {"events": [event], "trades": trades, "markets": sticks, "settlements": settled}
        for part, content in contents.items():
            (folder / f"{part}.json").write_text(json.dumps({part: content, "cursor": ""}))
        return folder

    def market(self, name: str) -> Content:
        """A market as the API answers it."""
        said = self.content[name]
        times = {"open_time": day(1), "close_time": day(said["closes"])}
        value = {"settlement_value_dollars": "0.3000"} if said["result"] == "scalar" else {}
        return {"ticker": name, "event_ticker": "E", "title": "Rain?", "result": said["result"], **times, **value}


SOURCES: list[Callable[[Random], Any]] = [Download, Hub, Sets, Markets, Bets, Candlesticks]


def boards(ledger: Ledger) -> list[list[tuple[str, ...]]]:
    """Scores, ranks, what stands and what is resolved, without log positions and instants of recording."""
    named = (
        ("scores", "contest", "question", "participant", "score", "coverage"),
        ("leaderboard", "contest", "rank", "participant", "score", "coverage"),
        ("standing", "question", "participant", "from_at", "to_at"),
        ("questions", "question", "state", "outcome", "opens_at", "closes_at", "closed_at"),
    )
    return [sorted(rows) for rows in tables(ledger, *named)]


def imported(ledger: Ledger, kind: str, folder: Path) -> int:
    """Import a copy, of which only contradictions are refused; return how many commands were accepted."""
    found = import_into(ledger, kind, folder, now=LATE, take_back=True)
    assert [line for line in found.refused if "neither counts" not in line] == []
    return found.counts["accepted"]


@pytest.mark.parametrize("seed", range(times(12)))
@pytest.mark.parametrize("source", SOURCES)
def test_the_boards_are_those_of_the_last_copy_alone(
    source: Callable[[Random], Any], seed: int, tmp_path: Path
) -> None:
    """After each of several copies, each of which changes a little; some return to what was said before."""
    random = Random(seed)
    drawn, before = source(random), list[Content]()
    with ticking() as ledger:
        for number in range(5):
            folder = drawn.write(tmp_path / str(number))
            imported(ledger, drawn.kind, folder)
            with ticking() as alone:
                imported(alone, drawn.kind, folder)
                expected = boards(alone)
            known = {row[0] for row in expected[3]}
            found = boards(ledger)
            found[3] = [row for row in found[3] if row[0] in known]  # a question that nobody forecasts is in no copy
            assert found == expected, (seed, number)
            assert imported(ledger, drawn.kind, folder) == 0, "what was imported is known"
            before.append(deepcopy(drawn.content))
            if random.random() < 0.3:
                drawn.content = deepcopy(random.choice(before))
            for _ in range(random.randint(1, 3)):
                drawn.change()


def test_where_options_change_the_boards_are_those_of_the_last_copy_or_the_import_says_what_stays(
    tmp_path: Path,
) -> None:
    """No forecast of before a change can be restated after it: such are counted, and nothing is refused.

    A forecast that is gone is taken back, also under another name, and what comes after the change is followed.
    """
    compared = stayed = 0
    for seed in range(times(40)):
        random = Random(seed)
        drawn, differs = Options(random), False
        with ticking() as ledger:
            for number in range(5):
                folder = drawn.write(tmp_path / f"{seed} {number}")
                found = import_into(ledger, drawn.kind, folder, now=LATE, take_back=True)
                assert found.refused == [], (seed, number)
                differs |= bool({BEFORE_CHANGE, OTHER_OPTIONS} & found.left_out.keys())
                with ticking() as alone:
                    import_into(alone, drawn.kind, folder, now=LATE)
                    if not differs:
                        assert boards(ledger) == boards(alone), (seed, number)
                compared, stayed = compared + (not differs and number > 0), stayed + differs
                assert import_into(ledger, drawn.kind, folder, now=LATE, take_back=True).counts["accepted"] == 0, (
                    seed,
                    number,
                )
                for _ in range(random.randint(1, 2)):
                    drawn.change()
    assert compared > times(40)
    assert stayed > 0


@pytest.mark.parametrize("seed", range(times(4)))
@pytest.mark.parametrize("source", SOURCES)
def test_an_import_of_a_newer_copy_that_is_interrupted_anywhere_goes_on_where_it_ended(
    source: Callable[[Random], Any], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command is recorded in a transaction of its own, and the process ends after so many of them: after every
    third number, in a long run after every one.
    """
    monkeypatch.setattr(append, "FIRST_BATCH", 1)
    monkeypatch.setattr(append, "LARGEST_BATCH", 1)
    drawn = source(Random(seed))
    older = drawn.write(tmp_path / "older")
    for _ in range(6):
        drawn.change()
    newer = drawn.write(tmp_path / "newer")
    with ticking() as ledger:
        imported(ledger, drawn.kind, older)
        changes = imported(ledger, drawn.kind, newer)
        expected = boards(ledger)
    for done in range(0, changes, 3 if LONG == 1 else 1):
        with ticking() as ledger:
            imported(ledger, drawn.kind, older)
            copy = KINDS[drawn.kind].read(SourceFiles(newer), None)
            items = carried(follow_copy(copy, ledger.read, Following(read_instant(LATE), take_back=True)), LeftOut())
            outcomes = append_batches(ledger, items, lambda _: None)
            accepted = (each for *_, each in outcomes if isinstance(each, Receipt) and not each.duplicate)
            assert len([*islice(accepted, done)]) == done
            imported(ledger, drawn.kind, newer)
            assert boards(ledger) == expected, done
