"""SCRAM credentials of users, as AlterUserScramCredentials sets them.  Source: KIP-554; error codes as in 4.3.1."""

from __future__ import annotations

from typing import NamedTuple

from pykafka08.error_codes import ErrorCode

__all__ = ["Credential", "ScramUsers"]

MECHANISMS = (1, 2)
LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16384


class Credential(NamedTuple):
    """One salted password."""

    iterations: int
    salt: bytes
    salted_password: bytes


class ScramUsers:
    """Credentials by user and mechanism."""

    def __init__(self) -> None:
        self._users: dict[str, dict[int, Credential]] = {}

    def names(self) -> list[str]:
        return sorted(self._users)

    def credentials(self, user: str) -> dict[int, Credential]:
        """Iterations by mechanism; empty for a user that does not exist."""
        return dict(sorted(self._users.get(user, {}).items()))

    def fault(self, user: str, mechanism: int, iterations: int | None = None) -> tuple[ErrorCode, str] | None:
        """The error if a credential cannot be set, or deleted if ``iterations`` is None; None if it can."""
        if not user:
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, "the user's name must not be empty"
        if mechanism not in MECHANISMS:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"SCRAM mechanism {mechanism} is not known"
        if iterations is None:
            is_there = mechanism in self._users.get(user, {})
            text = f"user {user!r:.300} has no credential of this mechanism"
            return None if is_there else (ErrorCode.RESOURCE_NOT_FOUND, text)
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            text = f"iterations must be {LEAST_ITERATIONS} to {MOST_ITERATIONS}, not {iterations}"
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, text
        return None

    def set(self, user: str, mechanism: int, credential: Credential) -> None:
        self._users.setdefault(user, {})[mechanism] = credential

    def delete(self, user: str, mechanism: int) -> None:
        del self._users[user][mechanism]
        if not self._users[user]:
            del self._users[user]
