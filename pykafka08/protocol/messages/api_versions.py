"""ApiVersions (API key 18)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)

__all__ = ["ApiVersion", "ApiVersionsRequest", "ApiVersionsResponse", "FinalizedFeatureKey", "SupportedFeatureKey"]


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest(Request["ApiVersionsResponse"]):
    """ApiVersionsRequest."""

    client_software_name: str = string(versions="3+", ignorable=True)
    client_software_version: str = string(versions="3+", ignorable=True)


@struct
class ApiVersion(Struct):
    """ApiVersion."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@struct
class SupportedFeatureKey(Struct):
    """SupportedFeatureKey."""

    name: str = string(versions="3+")
    min_version: int = int16(versions="3+")
    max_version: int = int16(versions="3+")


@struct
class FinalizedFeatureKey(Struct):
    """FinalizedFeatureKey."""

    name: str = string(versions="3+")
    max_version_level: int = int16(versions="3+")
    min_version_level: int = int16(versions="3+")


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse(Response):
    """ApiVersionsResponse."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, versions="3+", tag=0, tagged="3+", ignorable=True
    )
    finalized_features_epoch: int = int64(versions="3+", tag=1, tagged="3+", default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, versions="3+", tag=2, tagged="3+", ignorable=True
    )
    zk_migration_ready: bool = bool_(versions="3+", tag=3, tagged="3+", ignorable=True)
