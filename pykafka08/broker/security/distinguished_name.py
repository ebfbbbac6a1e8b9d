"""The subject of a certificate in the form of RFC 2253, as Java's ``X500Principal.getName()`` writes it.

Kafka's brokers take it for the name of a client's principal.  Source: RFC 2253, RFC 5280 (DER of certificates).
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafka08.broker.security.mechanisms import Refused

__all__ = ["subject_name"]

KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""Attributes with a short name; the others are written as their number and the DER of their value."""
TEXT_TAGS = frozenset({12, 19, 20, 22, 27, 30})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString; Java reads each of them as UTF-8."""
ESCAPED = ',=+<>#;"\\'
BLANKS = " \r"
VERSION_TAG = 0xA0
LONG_FORM = 0x80


def subject_name(certificate: bytes) -> str:
    """The subject of a certificate in DER, such as ``CN=alice,O=Example``; Refused if it cannot be read."""
    try:
        signed = next(_elements(next(_elements(certificate))[1]))[1]
        fields = [content for tag, content, _ in _elements(signed) if tag != VERSION_TAG]
        _serial, _algorithm, _issuer, _validity, subject = fields[:5]
        relative_names = [relative_name for _, relative_name, _ in _elements(subject)]
        return ",".join("+".join(map(_attribute, _contents(each))) for each in reversed(relative_names))
    except (IndexError, StopIteration, ValueError) as error:
        raise Refused(f"the client's certificate has no readable subject: {error!r}") from error


def _elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Tag, content and whole encoding of each DER element."""
    at = 0
    while at < len(data):
        start, tag, size, at = at, data[at], data[at + 1], at + 2
        if size >= LONG_FORM:
            count = size - LONG_FORM
            size, at = int.from_bytes(data[at : at + count], "big"), at + count
        if at + size > len(data):
            raise ValueError("an element is cut off")
        yield tag, data[at : at + size], data[start : at + size]
        at += size


def _contents(data: bytes) -> Iterator[bytes]:
    return (content for _, content, _ in _elements(data))


def _attribute(encoded: bytes) -> str:
    (_, oid, _), (tag, content, whole) = _elements(encoded)
    number = _dotted(oid)
    if number not in KEYWORDS or tag not in TEXT_TAGS:
        return f"{KEYWORDS.get(number, number)}=#{whole.hex()}"
    return f"{KEYWORDS[number]}={_escaped(content.decode(errors='replace'))}"


def _dotted(oid: bytes) -> str:
    numbers, value = [], 0
    for byte in oid:
        value = value << 7 | byte & 0x7F
        if byte < LONG_FORM:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(text: str) -> str:
    escaped = "".join(f"\\{each}" if each in ESCAPED else "\\00" if each == "\0" else each for each in text)
    inner = escaped.strip(BLANKS)
    if not inner:
        return "".join(f"\\{each}" for each in escaped)
    before, _, after = escaped.partition(inner)
    return "".join(f"\\{each}" for each in before) + inner + "".join(f"\\{each}" for each in after)
