"""An access token in a file, which another program replaces."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import anyio.to_thread

from pykafka08.errors import AuthenticationError, ConfigError
from pykafka08.security.oauth.token import LONGEST_TOKEN, OAuthToken
from pykafka08.security.secret import Secret

__all__ = ["TokenFile", "read_secret"]

URL = "sasl_oauthbearer_token_endpoint_url"


class TokenFile:
    """A ``file:`` URL; the file is read for each connection and each renewal."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise ConfigError(f"{URL}={url[:200]!r} is not of the form file:///path")
        self._path = Path(url2pathname(parts.path))

    async def token(self) -> OAuthToken:
        """The file's token; AuthenticationError if it cannot be read or has something else."""
        return OAuthToken(await read_secret(self._path, URL))


async def read_secret(path: Path, setting: str) -> Secret:
    """The text of a file without white space around it; AuthenticationError if it cannot be read."""
    return await anyio.to_thread.run_sync(_read, path, setting, abandon_on_cancel=True)


def _read(path: Path, setting: str) -> Secret:
    try:
        with path.open("rb") as file:
            return Secret(file.read(LONGEST_TOKEN + 100).decode().strip())
    except OSError as error:
        reason = error.strerror
    except ValueError:
        reason = "it is not UTF-8"
    # Raised here: as its context the error of the decoder would keep the bytes.
    raise AuthenticationError(f"{setting}: {path}: {reason}", mechanism="OAUTHBEARER")
