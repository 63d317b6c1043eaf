"""Whether the kit kept its promises in a run. Pure; knows the store's bytes and what outsiders saw, not the kit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from google.protobuf import wrappers_pb2

from control.acting import ACTING, WORD
from controlpb.v1 import control_pb2
from store.keys import Keys
from tests.control.printers import BOOK, NOTE, Book
from tests.control.story import Story


def violations(story: Story) -> list[str]:
    """Each with the broken promise in front; empty: all were kept."""
    books = final_books(story)
    found = [*_lost(story, books), *_twice(books), *_order(story, books)]
    return [*found, *_two_writers(story), *_two_printers(story), *_printed(story, books)]


def final_books(story: Story) -> dict[str, Book]:
    """What the records hold at the end."""
    names, books = Keys(story.prefix), dict[str, Book]()
    for batch in story.batches:
        for change in batch.changes:
            kind, rest = names.name(change.key)
            if kind == BOOK.name and change.value is not None:
                books[rest] = Book.parse(wrappers_pb2.StringValue.FromString(change.value))
    return books


def _lost(story: Story, books: dict[str, Book]) -> Iterator[str]:
    there = {order_id for book in books.values() for order_id in book.ids}
    for client, acked in story.acked.items():
        yield from (f"LOST: {order_id} of {client} was acknowledged" for order_id in acked if order_id not in there)
    yield from (f"MADE UP: {order_id} was refused" for order_id in there & story.refused)
    yield from (f"MADE UP: {order_id} was never sent" for order_id in there - story.sent.keys())


def _twice(books: dict[str, Book]) -> Iterator[str]:
    for name, book in books.items():
        yield from (f"TWICE: {order_id} in {name}" for order_id, count in Counter(book.ids).items() if count > 1)


def _order(story: Story, books: dict[str, Book]) -> Iterator[str]:
    """A client sends an order when it knows what became of the one before: they took effect in that order."""
    places = {order_id: (name, i) for name, book in books.items() for i, order_id in enumerate(book.ids)}
    for client, acked in story.acked.items():
        last: dict[str, int] = defaultdict(lambda: -1)
        for name, i in (places[order_id] for order_id in acked if order_id in places):
            if i < last[name]:
                yield f"ORDER: {client} in {name}"
            last[name] = i


def _two_writers(story: Story) -> Iterator[str]:
    """Every record carries the acting word of its writer, which must be the one that stands at that revision."""
    names, word = Keys(story.prefix), 0
    word_key = names.of(ACTING.name, WORD)
    for batch in story.batches:
        revision: dict[int, list[tuple[bytes, bytes]]] = defaultdict(list)
        for change in batch.changes:
            revision[change.revision].append((change.key, change.value or b""))
        for at, changes in sorted(revision.items()):
            before = word
            for key, value in changes:
                word = control_pb2.Acting.FromString(value).word if key == word_key else word
            for key, value in changes:
                if names.name(key).kind in (BOOK.name, NOTE.name) and value:
                    writer = Book.parse(wrappers_pb2.StringValue.FromString(value)).word
                    if writer not in (before, word):
                        yield f"TWO ACT: {names.name(key).rest} was written at {at} under a word that is over"


def _two_printers(story: Story) -> Iterator[str]:
    """No effect of a process comes when another one acts already."""
    order = {word: i for i, (_, word) in enumerate(story.acting_since)}
    for printed in story.printed:
        later = [since for since, word in story.acting_since if order[word] > order.get(printed.word, -1)]
        if later and later[0] < printed.at:
            yield f"TWO ACT: {printed.order_id} was printed {printed.at - later[0]:.3f} s after another took over"


def _printed(story: Story, books: dict[str, Book]) -> Iterator[str]:
    """Each id once and in order; all of them in the end."""
    found = defaultdict[str, list[str]](list)
    for printed in story.printed:
        found[printed.book].append(printed.order_id)
    for name, book in books.items():
        if found[name] != book.ids:
            yield f"EFFECTS: {name}: printed {len(found[name])}, ordered {len(book.ids)}, or not in that order"
