"""Records as columns: numbers as arrays, and where keys, values and headers lie in the bytes they came in."""

from __future__ import annotations

from pykafka08.errors import CorruptRecordError
from pykafka08.records.record import Headers, parse_headers

__all__ = ["Columns"]


class Columns:
    """The fields of ``count`` records, in the order of their offsets.

    - ``data``: the unpacked bytes of the batch; edges are positions in them.
    - ``offsets``, ``timestamps_ms``: 64-bit integers, one for each record; -1 is the timestamp in magic 0.
    - ``key_edges``, ``value_edges``: 32-bit integers, two for each record: start and end.  None if all are null.
    - ``key_nulls``, ``value_nulls``: a byte for each record, 1 where it is null; None if none is null.
    - ``header_edges``: 32-bit integers, two for each record, around what ``parse_headers`` reads; both the same where a
      record has none.  None if no record has any.

    All arrays are memoryviews in the machine's own byte order, which numpy and pyarrow take as they are.  They keep
    ``data`` alive, and with it all batches that came uncompressed in one answer.
    """

    __slots__ = (
        "count",
        "data",
        "header_edges",
        "key_edges",
        "key_nulls",
        "offsets",
        "timestamps_ms",
        "value_edges",
        "value_nulls",
    )

    data: bytes
    count: int
    offsets: memoryview
    timestamps_ms: memoryview
    key_edges: memoryview | None
    key_nulls: memoryview | None
    value_edges: memoryview | None
    value_nulls: memoryview | None
    header_edges: memoryview | None

    def __init__(
        self,
        data: bytes,
        offsets: memoryview,
        timestamps_ms: memoryview,
        *,
        key_edges: memoryview | None = None,
        key_nulls: memoryview | None = None,
        value_edges: memoryview | None = None,
        value_nulls: memoryview | None = None,
        header_edges: memoryview | None = None,
    ) -> None:
        self.data = data
        self.count = len(offsets)
        self.offsets = offsets
        self.timestamps_ms = timestamps_ms
        self.key_edges = key_edges
        self.key_nulls = key_nulls
        self.value_edges = value_edges
        self.value_nulls = value_nulls
        self.header_edges = header_edges

    def __len__(self) -> int:
        return self.count

    def keys(self) -> list[bytes | None]:
        """The keys as bytes."""
        return self.fields(self.key_edges, self.key_nulls)

    def values(self) -> list[bytes | None]:
        """The values as bytes."""
        return self.fields(self.value_edges, self.value_nulls)

    def fields(self, edges: memoryview | None, nulls: memoryview | None) -> list[bytes | None]:
        """The keys or the values, whose edges and nulls these are."""
        if edges is None:
            return [None] * self.count
        pieces = _pieces(self.data, edges)
        if nulls is None:
            return list(pieces)
        return [None if is_null else piece for is_null, piece in zip(nulls.tolist(), pieces, strict=True)]

    def headers(self) -> list[Headers]:
        """The headers of each record; CorruptRecordError, with its offset, for the first whose bytes are no headers."""
        pieces = self.headers_in_bytes()
        if pieces is None:
            return [()] * self.count
        headers: list[Headers] = []
        try:
            for piece in pieces:
                headers.append(parse_headers(piece) if piece else ())  # noqa: PERF401 - counted where one is damaged
        except CorruptRecordError as error:
            offset = self.offsets[len(headers)]
            raise CorruptRecordError(error.message, offset=offset, next_offset=offset + 1) from error
        return headers

    def headers_in_bytes(self) -> list[bytes] | None:
        """What ``parse_headers`` reads, empty where a record has none; None if no record has any."""
        return None if self.header_edges is None else _pieces(self.data, self.header_edges)


def _pieces(data: bytes, edges: memoryview) -> list[bytes]:
    bounds = edges.tolist()
    return [data[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
