"""What a topic of a benchmark holds, told by its name, so that client and server agree without a word."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.payload import keys_of, pool_of

__all__ = ["BATCH_BYTES", "Profile", "ReadTopic", "partitions_of"]

BATCH_BYTES = 512 * 1024
_POOL_BYTES = 4 * 1024 * 1024
_OVERHEAD = 12
"""About what a record has around its key and value."""


@dataclass(frozen=True)
class Profile:
    """Kind of records: bytes of a value, with keys or not, codec, partitions, bytes of a batch before compression."""

    size: int = 100
    keyed: bool = False
    codec: str = "none"
    partitions: int = 1
    batch_bytes: int = BATCH_BYTES

    def __str__(self) -> str:
        words = [f"{self.size} B" if self.size < 1024 else f"{self.size // 1024} KiB"]
        words.append("keys" if self.keyed else "no keys")
        words.append(self.codec)
        words.append(f"{self.partitions} partition{'s' * (self.partitions > 1)}")
        if self.batch_bytes != BATCH_BYTES:
            words.append(f"{self.batch_bytes // 1024} KiB batches")
        return ", ".join(words)

    @property
    def records_per_batch(self) -> int:
        return max(1, self.batch_bytes // (self.size + _OVERHEAD + 8 * self.keyed))

    @property
    def distinct_batches(self) -> int:
        """Batches after which the records come again."""
        return max(2, _POOL_BYTES // self.batch_bytes)

    def pool(self) -> tuple[list[bytes], list[bytes] | None]:
        """Values and keys of the distinct batches."""
        count = self.records_per_batch * self.distinct_batches
        return pool_of(self.size, count), keys_of(count) if self.keyed else None

    def written_name(self, prefix: str = "sink") -> str:
        return f"{prefix}.{self._text()}"

    def _text(self) -> str:
        return f"{self.size}.{int(self.keyed)}.{self.codec}.{self.batch_bytes}.{self.partitions}"


@dataclass(frozen=True)
class ReadTopic:
    """A topic to be consumed; each partition holds the same ``batches`` batches."""

    profile: Profile
    batches: int

    @classmethod
    def holding(cls, profile: Profile, records: int) -> ReadTopic:
        """The smallest topic of at least so many records."""
        per_round = profile.records_per_batch * profile.partitions
        return cls(profile, max(1, -(-records // per_round)))

    @classmethod
    def from_name(cls, name: str) -> ReadTopic:
        """ValueError if it is no such name."""
        kind, size, keyed, codec, batch_bytes, partitions, batches = name.split(".")
        if kind != "read":
            raise ValueError(f"{name!r} is no topic to read")
        return cls(Profile(int(size), keyed == "1", codec, int(partitions), int(batch_bytes)), int(batches))

    @property
    def name(self) -> str:
        return f"read.{self.profile._text()}.{self.batches}"

    @property
    def partition_records(self) -> int:
        return self.batches * self.profile.records_per_batch

    @property
    def records(self) -> int:
        return self.partition_records * self.profile.partitions

    @property
    def value_bytes(self) -> int:
        """Of all values together: what a consumer that looked at each has counted."""
        values, _ = self.profile.pool()
        rounds, left = divmod(self.partition_records, len(values))
        return self.profile.partitions * (rounds * sum(map(len, values)) + sum(map(len, values[:left])))


def partitions_of(topic: str) -> int:
    """Partitions of a topic that is named as this module does; of any other 1."""
    words = topic.split(".")
    return int(words[5]) if len(words) >= 6 and words[5].isdigit() else 1
