"""UpdateFeatures: moves features of the cluster to another version (API key 57).

The controller decides.

Versions, the first release with each, and what is new in it:

     0  2.7     (KIP-584)
     1  3.3     kinds of downgrade, validation only (KIP-778)
     2  4.0     all features or none (KIP-1022)
"""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = ["FeatureUpdateKey", "UpdatableFeatureResult", "UpdateFeaturesRequest", "UpdateFeaturesResponse"]


@struct
class FeatureUpdateKey(Struct):
    """A feature and its new version."""

    feature: str = string()
    max_version_level: int = int16()  # below 1 removes it
    allow_downgrade: bool = bool_(versions="0")  # version 0 alone
    upgrade_type: int = int8(versions="1+", default=1)  # 1 upgrade, 2 safe downgrade, 3 unsafe downgrade


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest(Request["UpdateFeaturesResponse"]):
    """The changes."""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = bool_(versions="1+")


@struct
class UpdatableFeatureResult(Struct):
    """The result for one feature."""

    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Response):
    """One result for all, and up to version 1 one for each."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, versions="0-1", ignorable=True)
