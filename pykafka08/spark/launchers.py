"""Programs of a few lines of shell that start another one, in the user's cache; nothing goes into site-packages."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["write_launcher"]


def write_launcher(
    program: str,
    text: str,
    environment: Mapping[str, str] = os.environ,
    furnish: Callable[[Path], None] = lambda home: None,
) -> Path:
    """The path of ``bin/PROGRAM`` with this ``text``, made if it is not there.

    Its home, two levels up, lies in ``$XDG_CACHE_HOME/pykafka08`` (``~/.cache/pykafka08``), one for each text; where
    that cannot be written, in a new temporary folder.  ``furnish`` puts into the home what else belongs there.
    """
    name = f"{program}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    caches = environment.get("XDG_CACHE_HOME") or os.path.join(environment.get("HOME") or Path.home(), ".cache")
    home = Path(caches, "pykafka08", name)
    try:
        return _written(home, program, text, furnish)
    except OSError:
        home = Path(tempfile.mkdtemp(prefix=f"pykafka08-{name}-"))
        return _written(home, program, text, furnish)


def _written(home: Path, program: str, text: str, furnish: Callable[[Path], None]) -> Path:
    """Written beside and renamed: two processes that start at once both find it whole."""
    launcher = home / "bin" / program
    if launcher.is_file() and launcher.read_text() == text and os.access(launcher, os.X_OK):
        return launcher
    launcher.parent.mkdir(parents=True, exist_ok=True)
    furnish(home)
    number, draft = tempfile.mkstemp(dir=launcher.parent)
    with os.fdopen(number, "w") as file:
        file.write(text)
    os.chmod(draft, 0o700)
    os.replace(draft, launcher)
    return launcher
