"""ApiVersions: the versions that the played release serves.  Source: KIP-35, KIP-511, KIP-584."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

__all__ = ["api_versions"]


@handles(ApiVersionsRequest)
def api_versions(call: Call, request: ApiVersionsRequest) -> Reply:
    return ApiVersionsResponse(
        error_code=call.scripted_error(),
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
            for key, versions in sorted(call.cluster.served.items())
        ],
        finalized_features_epoch=0 if call.personality >= (2, 7) else -1,
    )
