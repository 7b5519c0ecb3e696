"""The state of a writer after many rows, of which forecasts of a probability are applied as columns."""

from collections.abc import Iterator, Sequence

import numpy as np

from forecast_ledger.ledger.batching.writer_state import WriterState
from forecast_ledger.ledger.model.plain_rows import ForecastRows, ReadPage, unseal_columns


def apply_pages(known: WriterState, pages: Iterator[Sequence[bytes]]) -> None:
    """Apply the rows after the head, page by page, as `WriterState.apply` does. Raises Corrupt."""
    texts = _Texts()
    for page in unseal_columns(pages, known.head):
        if isinstance(page, ReadPage) and _is_plain(known, page, texts):
            _apply(known, page, texts)
        else:
            known.apply(page)


class _Texts(dict[bytes, str]):
    """The text of each id, which all that stands under it shares."""

    def __missing__(self, ident: bytes) -> str:
        text = self[ident] = ident.decode()
        return text


def _is_plain(known: WriterState, page: ReadPage, texts: _Texts) -> bool:
    """Return whether each forecast is on a question that was opened before, and is all that its command recorded."""
    opened, ids = known.state.standing, page.forecasts.command_id
    others = {recorded.command_id for recorded in page.others}
    return (
        len(ids) > 0
        and all(map(opened.__contains__, map(texts.__getitem__, page.forecasts.question)))
        and not (ids[1:] == ids[:-1]).any()
        and ids[0].decode() not in known.commands.recent
        and (not others or others.isdisjoint(map(bytes.decode, ids.tolist())))
    )


def _apply(known: WriterState, page: ReadPage, texts: _Texts) -> None:
    """Apply a page of which the forecasts are plain."""
    made, last = page.forecasts, page[-1]
    codes = made.command_id.view(np.uint8).reshape(len(made.at), -1)
    known.commands.add(known.commands.hashed_codes((), [codes]), made.position.astype(np.uint64))
    done = 0
    # The last forecast is applied by itself: its command is to be recent, because the next page may go on with it.
    others = [*page.others, last] if made.position[-1] == last.position else page.others
    for recorded in others:
        end = int(np.searchsorted(made.position, recorded.position))
        _stand(known, made, slice(done, end), texts)
        known.apply([recorded])
        done = end


def _stand(known: WriterState, made: ForecastRows, part: slice, texts: _Texts) -> None:
    """Mark that some of the forecasts stand."""
    standing, instants = known.state.standing, made.at[part].tolist()
    questions, people = (map(texts.__getitem__, ids[part]) for ids in (made.question, made.participant))
    for question, participant, at in zip(questions, people, instants, strict=True):
        on = standing[question]
        if type(on) is not dict:
            on = known.state.standing_on(question)
        on[participant] = at
