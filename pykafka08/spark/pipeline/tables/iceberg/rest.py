"""A REST catalog that answers in time, and whose tables use the store of the folder."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from requests import Session

__all__ = ["FolderRestCatalog"]

TIMEOUT_S = (10.0, 60.0)
"""The longest times to connect, and between two parts of an answer.  pyiceberg has no limit of its own."""


class FolderRestCatalog(RestCatalog):
    """pyiceberg's catalog with a time-out for each request, and with the properties of files in ``own``.

    The server and a table may have other properties of files, such as credentials that the catalog vends.
    """

    def __init__(self, name: str, own: dict[str, str], **properties: str) -> None:
        self._own = own
        super().__init__(name, **properties, **own)

    def _config_headers(self, session: Session) -> None:
        super()._config_headers(session)
        session.request = partial(session.request, timeout=TIMEOUT_S)  # type: ignore[method-assign]

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> Any:
        return super()._load_file_io({**(properties or {}), **self._own}, location)
