"""Which form of the package runs: interpreted, or with its hot modules compiled by mypyc.

A compiled package has one shared library, ``pykafka08.hot__mypyc``, and a small extension module beside the source of
each module in it.  docs/compiled.md says how to build it and what differs.
"""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec

__all__ = ["compiled", "compiled_modules", "interpreted_modules"]

_SHARED_LIBRARY = "pykafka08.hot__mypyc"
_MARK = "init_"  # the library has a capsule of this name for each module: init_pykafka08___records___batch


def _built_modules() -> tuple[str, ...]:
    try:
        library = import_module(_SHARED_LIBRARY)
    except ModuleNotFoundError:
        return ()
    return tuple(
        sorted(name.removeprefix(_MARK).replace("___", ".") for name in dir(library) if name.startswith(_MARK))
    )


def _is_extension(module: str) -> bool:
    spec = find_spec(module)
    return spec is not None and spec.origin is not None and spec.origin.endswith(tuple(EXTENSION_SUFFIXES))


def compiled_modules() -> tuple[str, ...]:
    """Names of the modules that run as machine code; none in the pure form."""
    return tuple(module for module in _built_modules() if _is_extension(module))


def interpreted_modules() -> tuple[str, ...]:
    """Names of the modules that were compiled and are interpreted all the same: their extension module is gone."""
    return tuple(module for module in _built_modules() if not _is_extension(module))


compiled: bool = bool(compiled_modules()) and not interpreted_modules()
"""True if every hot module runs as machine code."""
