"""ApiVersions: which APIs a broker serves, in which versions (API key 18).

To a version that it does not know a broker answers in the form of version 0 with UNSUPPORTED_VERSION, and from 2.4 on
with its own range of this API (KIP-511).  The response header is always version 0.  Brokers before 0.10 do not know
this API: 0.8 closes the connection, 0.9 never answers and stalls its other clients, so it must not be sent there.

Versions, the first release with each, and what is new in it:

     0  0.10.0
     1  0.11.0  throttle time (KIP-124)
     2  2.0     the answer comes before the throttling, not after it (KIP-219)
     3  2.4     compact forms, tagged fields (KIP-482); name of the client (KIP-511), features (KIP-584)
     4  3.9     features whose range starts at 0 are told (KAFKA-17011)
"""

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
    """Who asks; for the broker's metrics."""

    client_software_name: str = string(versions="3+", ignorable=True)
    client_software_version: str = string(versions="3+", ignorable=True)


@struct
class ApiVersion(Struct):
    """An API and its range of versions."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@struct
class SupportedFeatureKey(Struct):
    """A feature that the broker can do."""

    name: str = string(versions="3+")
    min_version: int = int16(versions="3+")
    max_version: int = int16(versions="3+")


@struct
class FinalizedFeatureKey(Struct):
    """A feature that the cluster has agreed on."""

    name: str = string(versions="3+")
    max_version_level: int = int16(versions="3+")
    min_version_level: int = int16(versions="3+")  # lowest version of the agreement


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse(Response):
    """All APIs of the broker."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, versions="3+", tag=0, tagged="3+", ignorable=True
    )
    # -1 if unknown
    finalized_features_epoch: int = int64(versions="3+", tag=1, tagged="3+", default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, versions="3+", tag=2, tagged="3+", ignorable=True
    )
    zk_migration_ready: bool = bool_(versions="3+", tag=3, tagged="3+", ignorable=True)
