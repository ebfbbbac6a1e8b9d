"""Which packages the codecs may use beside what every installation has, and how each is found; what Arrow needs.

Every installation has zlib, crc32c and cramjam (which python-snappy installs).  Nothing is imported before a codec is
first used.  What is chosen, and why:

* gzip: isal, then zlib-ng, then zlib; isal has no slow levels, so those go to zlib-ng or zlib.
* snappy: cramjam both ways.
* lz4: unpacked by cramjam block by block, which is the quickest of all; packed by the package lz4 or by cramjam.
* zstd: zstandard, whose contexts are kept from batch to batch (a new one costs more than a small batch), then cramjam.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

__all__ = ["ARROW_MISSING", "PACKAGES", "load"]

#: What a ConfigError says where pyarrow or numpy is wanted and is not there.
ARROW_MISSING = "Arrow needs the packages pyarrow and numpy: pip install 'pykafka08[arrow]'"

#: Packages that make codecs faster, by the extras that install them: gzip (two), lz4, zstd.
PACKAGES = ("isal", "zlib_ng", "lz4", "zstandard")

_MODULES = {"isal": "isal.isal_zlib", "zlib_ng": "zlib_ng.zlib_ng", "lz4": "lz4.frame", "zstandard": "zstandard"}


def load(package: str, allowed: Collection[str] = PACKAGES) -> Any:
    """The module of ``package`` that packs and unpacks; None where it is not installed or not ``allowed``."""
    if package not in allowed:
        return None
    try:
        return import_module(_MODULES[package])
    except ImportError:
        return None
