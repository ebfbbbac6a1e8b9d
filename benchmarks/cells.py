"""What is measured: cells, and who plays in each.  A cell is one job on one kind of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from benchmarks.topics import Profile

__all__ = ["CELLS", "FORMS", "Cell", "Form", "Player", "players_of", "select"]

OURS = "pykafka08"
USUAL = Profile()
SENDS = 2000
"""Awaited sends of a turn that measures them."""
END_TO_END_S = 3
"""Seconds of a turn that measures the way from producer to consumer."""


@dataclass(frozen=True)
class Form:
    """One of the ways in which this client runs."""

    compiled: bool
    loop: str

    @property
    def name(self) -> str:
        return ("compiled" if self.compiled else "pure") + (" uvloop" if self.loop == "uvloop" else "")


FORMS = (Form(False, "asyncio"), Form(True, "asyncio"), Form(False, "uvloop"), Form(True, "uvloop"))


IN_PLAINTEXT = "in plaintext"


@dataclass(frozen=True)
class Player:
    """A client with one of its ways, on an event loop; ``name`` is how results call it.

    ``is_plaintext``: it connects in plaintext in a cell with TLS.
    """

    client: str
    way: str
    form: Form | None = None
    is_plaintext: bool = False

    @property
    def name(self) -> str:
        name = f"{self.client} {self.form.name} {self.way}" if self.form else f"{self.client} {self.way}"
        return f"{name} {IN_PLAINTEXT}" if self.is_plaintext else name


@dataclass(frozen=True)
class Cell:
    """``kind`` is consume, produce, latency or end-to-end; ``ours`` are ways of this client, ``peers`` (client, way).

    ``server`` is replay, tls (the same over TLS) or kafka; ``is_main`` cells have targets, and longer turns.
    """

    kind: str
    what: str
    ours: tuple[str, ...]
    peers: tuple[tuple[str, str], ...]
    profile: Profile = USUAL
    server: str = "replay"
    is_main: bool = True
    is_quick: bool = False
    rate: int = 0

    @property
    def records(self) -> int | None:
        """Of each turn, where it is not scaled to the player."""
        if self.kind == "latency":
            return SENDS
        return self.rate * END_TO_END_S if self.rate else None

    @property
    def name(self) -> str:
        at_rate = f", {self.rate:,} records/s" if self.rate else ""
        return f"{self.kind} {self.what}, {self.profile}{at_rate}, {self.server}"


_CONSUME = {
    "batches": Cell(
        "consume",
        "batches",
        ("batches",),
        (("aiokafka", "getmany"), ("confluent", "consume"), ("kafka_python", "poll"), ("confluent", "aio_consume")),
        is_quick=True,
    ),
    "iterate": Cell(
        "consume",
        "iterate",
        ("iterate",),
        (("aiokafka", "iterate"), ("confluent", "poll"), ("kafka_python", "iterate")),
        is_quick=True,
    ),
    "values": Cell(
        "consume",
        "values",
        ("values",),
        (
            ("aiokafka", "getmany"),
            ("aiokafka", "getmany_values"),
            ("confluent", "consume"),
            ("confluent", "consume_values"),
            ("kafka_python", "poll"),
        ),
        is_quick=True,
    ),
    "arrow": Cell(
        "consume",
        "arrow",
        ("arrow",),
        (("aiokafka", "getmany"), ("confluent", "consume"), ("kafka_python", "poll")),
        is_quick=True,
    ),
}
_PRODUCE = {
    "enqueue": Cell(
        "produce",
        "enqueue",
        ("enqueue",),
        (("aiokafka", "send"), ("confluent", "produce"), ("kafka_python", "send"), ("confluent", "aio_produce")),
        is_quick=True,
    ),
    "many": Cell(
        "produce",
        "send_many",
        ("send_many", "send_arrow"),
        (
            ("aiokafka", "send_batch"),
            ("confluent", "produce"),
            ("confluent", "produce_batch"),
            ("kafka_python", "send"),
        ),
        is_quick=True,
    ),
    "send": Cell("produce", "awaited send", ("send",), (("aiokafka", "send_and_wait"),)),
}
_LATENCY = Cell(
    "latency",
    "awaited single send",
    ("send_one",),
    (("aiokafka", "send_one"), ("confluent", "send_one"), ("kafka_python", "send_one"), ("confluent", "aio_send_one")),
    is_quick=True,
)
_END_TO_END = tuple(
    Cell(
        "end-to-end",
        "latency",
        ("end_to_end",),
        (("aiokafka", "end_to_end"), ("confluent", "end_to_end"), ("kafka_python", "end_to_end")),
        server="kafka",
        rate=rate,
    )
    for rate in (1_000, 10_000)
)
CODECS = ("lz4", "zstd", "snappy", "gzip")
_PROFILES = (
    Profile(keyed=True),
    Profile(size=1024),
    Profile(partitions=64),
    Profile(batch_bytes=16 * 1024),
    *(Profile(codec=codec) for codec in CODECS),
    *(Profile(size=1024, keyed=True, codec=codec) for codec in ("none", *CODECS)),
)


_EVERY_WAY = (
    Cell(
        "consume",
        "every way",
        ("batches", "iterate", "values", "arrow"),
        (
            ("aiokafka", "getmany"),
            ("aiokafka", "iterate"),
            ("confluent", "consume"),
            ("confluent", "aio_consume"),
            ("kafka_python", "poll"),
        ),
        is_main=False,
    ),
    Cell(
        "produce",
        "every way",
        ("enqueue", "send_many", "send_arrow"),
        (
            ("aiokafka", "send"),
            ("aiokafka", "send_batch"),
            ("confluent", "produce"),
            ("confluent", "aio_produce"),
            ("kafka_python", "send"),
        ),
        is_main=False,
    ),
)


def _matrix() -> Iterator[Cell]:
    """The other kinds of records; all that is consumed first, so that the processes of its players serve every cell."""
    for cell in _EVERY_WAY:
        for profile in _PROFILES:
            yield replace(cell, profile=profile)
    yield replace(_LATENCY, profile=Profile(size=1024), is_main=False, is_quick=False)


def _on_kafka(cell: Cell) -> Cell:
    return replace(cell, server="kafka", is_quick=False)


_LIBRDKAFKA = (("confluent", "consume"), ("confluent", "poll"), ("confluent", "produce"))


def _over_tls() -> Iterator[Cell]:
    """Small and large values; each client runs over TLS and in plaintext, in turns."""
    for profile in (USUAL, Profile(size=1024)):
        for cell in (_CONSUME["batches"], _CONSUME["iterate"], _PRODUCE["enqueue"], _PRODUCE["send"]):
            peers = tuple(each for each in cell.peers if each[0] == "aiokafka" or each in _LIBRDKAFKA)
            what = f"TLS {cell.what}"
            yield replace(cell, what=what, peers=peers, profile=profile, server="tls", is_main=False, is_quick=False)


CELLS: tuple[Cell, ...] = (
    *_CONSUME.values(),
    *_PRODUCE.values(),
    _LATENCY,
    *map(_on_kafka, (*_CONSUME.values(), *_PRODUCE.values(), _LATENCY)),
    *_END_TO_END,
    *_over_tls(),
    *_matrix(),
)


def select(cells: Iterable[Cell], words: str) -> list[Cell]:
    """The cell of that very name, or those whose names have every word; alternatives are separated by commas."""
    if exact := [cell for cell in cells if cell.name == words]:
        return exact
    wanted = [alternative.split() for alternative in words.split(",")]
    return [cell for cell in cells if any(all(word in cell.name for word in each) for each in wanted)]


def players_of(cell: Cell, forms: Iterable[Form]) -> list[Player]:
    """Those of this client in each of the forms, then its peers."""
    with_uvloop = cell.is_main and cell.server == "replay"
    chosen = [form for form in forms if with_uvloop or form.loop == "asyncio"]
    ours = [Player(OURS, way, form) for way in cell.ours for form in chosen]
    players = ours + [Player(client, way) for client, way in cell.peers]
    in_plaintext = [replace(player, is_plaintext=True) for player in players] if cell.server == "tls" else []
    return players + in_plaintext
