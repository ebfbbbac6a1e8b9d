"""The machine, in a few words."""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["describe_machine", "processor"]


def describe_machine() -> str:
    model = _told("model name") or platform.processor() or platform.machine()
    system = f"{platform.system()} {platform.release().partition('-')[0]}"
    return f"{os.cpu_count()} cores, {model}; {platform.python_implementation()} {platform.python_version()}; {system}"


def processor() -> str:
    """Its kind: machines that say the same model name may have processors of several years."""
    model = _told("model name") or platform.processor() or platform.machine()
    family, number = _told("cpu family"), _told("model")
    return f"{model}, family {family}, model {number}" if family and number else model


def _told(name: str) -> str:
    """What Linux says about the first processor; empty where it does not."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    found = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in found if key.strip() == name), "")
