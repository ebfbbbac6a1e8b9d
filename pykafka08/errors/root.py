"""The root of all errors."""

from __future__ import annotations

from typing import Any

from pykafka08.short_names import MOST_SHOWN, shortened

__all__ = [
    "KafkaError",
]


class KafkaError(Exception):
    """Root of the tree.

    ``broker`` is ``"host:port"`` or ``"host:port (id N)"``; attributes that do not apply are None.
    """

    may_be_written = False
    """Of a record that failed: an attempt whose answer was lost may have put it into the log all the same."""
    group: str | None = None
    """The consumer group, for errors of group requests."""

    def __init__(
        self,
        message: str,
        *,
        broker: str | None = None,
        api: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
    ) -> None:
        if topic is not None and len(topic) > MOST_SHOWN:
            message = message.replace(topic, shortened(topic))
        super().__init__(message)
        self.broker = broker
        self.api = api
        self.topic = topic
        self.partition = partition
        self.offset = offset

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles keep the text: the arguments of subclasses are not those of this class."""
        return _restored, (type(self), self.args, self.__dict__)

    @property
    def message(self) -> str:
        """The text without the facts that ``str()`` adds."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        text = self.message
        facts = [
            f"{name} {value}"
            for name, value in (
                ("broker", self.broker),
                ("api", self.api),
                ("group", repr(shortened(self.group)) if self.group is not None else None),
                ("topic", repr(shortened(self.topic)) if self.topic is not None else None),
                ("partition", self.partition),
                ("offset", self.offset),
            )
            if value is not None
        ]
        return f"{text} [{', '.join(facts)}]" if facts else text


def _restored(kind: type[KafkaError], args: tuple[object, ...], attributes: dict[str, Any]) -> KafkaError:
    error: KafkaError = kind.__new__(kind, *args)
    error.args = args  # OSError's own constructor, of those that are time-outs too, drops them
    error.__dict__.update(attributes)
    return error
