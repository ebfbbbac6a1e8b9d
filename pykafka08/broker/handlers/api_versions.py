"""ApiVersions: the versions that the played release serves.  Source: KIP-35, KIP-511, KIP-584."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

__all__ = ["api_versions"]


ZERO_FEATURES_VERSION = 4  # KAFKA-17011: older clients cannot read ranges that start at 0


@handles(ApiVersionsRequest)
def api_versions(call: Call, request: ApiVersionsRequest) -> Reply:
    code = ErrorCode.NONE if call.sasl is None else call.sasl.ask_versions()
    if code:
        return ApiVersionsResponse(error_code=code)
    features = call.cluster.features
    return ApiVersionsResponse(
        error_code=call.scripted_error(),
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
            for key, versions in sorted(call.cluster.served.items())
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=0, max_version=level)
            for name, level in call.personality.features.items()
            if call.version >= ZERO_FEATURES_VERSION
        ],
        finalized_features_epoch=0 if call.personality >= (2, 7) else -1,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in features.items()
            if level
        ],
    )
