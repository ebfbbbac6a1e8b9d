"""Choices of packages that the codecs are tested with; all that are named must be installed for the tests."""

from __future__ import annotations

from pykafka08.records.libraries import PACKAGES

__all__ = ["CHOICES"]

CHOICES = {"fast packages": PACKAGES, "zlib-ng alone": ("zlib_ng",), "bare install": ()}
