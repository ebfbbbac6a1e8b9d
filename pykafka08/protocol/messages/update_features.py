"""UpdateFeatures (API key 57)."""

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
    """FeatureUpdateKey."""

    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = bool_(versions="0")
    upgrade_type: int = int8(versions="1+", default=1)


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest(Request["UpdateFeaturesResponse"]):
    """UpdateFeaturesRequest."""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = bool_(versions="1+")


@struct
class UpdatableFeatureResult(Struct):
    """UpdatableFeatureResult."""

    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Response):
    """UpdateFeaturesResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, versions="0-1", ignorable=True)
