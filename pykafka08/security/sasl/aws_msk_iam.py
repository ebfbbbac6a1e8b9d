"""IAM authentication of Amazon MSK, with tokens of AWS's own signer package.

MSK takes a signed URL either in the mechanism AWS_MSK_IAM or as the token of OAUTHBEARER.  The signer makes the second
form, so that OAUTHBEARER is the mechanism on the wire.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from functools import partial
from importlib.util import find_spec

import anyio.to_thread

from pykafka08.errors import AuthenticationError, ConfigError, KafkaError, TransportError
from pykafka08.security.oauth.shared_token import RefreshTimes, SharedToken
from pykafka08.security.oauth.token import OAuthToken
from pykafka08.security.sasl.oauthbearer import NAME as WIRE_NAME
from pykafka08.security.sasl.oauthbearer import OAuthBearer, warn_of_clear_text
from pykafka08.security.settings import SecurityConfig

__all__ = ["AwsMskIamLogin", "login_of"]

SETTING = "AWS_MSK_IAM"
SIGNER = "aws_msk_iam_sasl_signer"
HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\.?", re.IGNORECASE)
REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d{1,2}")
LIBRARIES = ("boto3", "botocore", "urllib3")
"""Loggers that log signatures, session tokens and answers of AWS at DEBUG."""
LONGEST_REASON = 300


class AwsMskIamLogin:
    """AWS credentials of one client, and a token for each region that it talks to."""

    name = WIRE_NAME
    source = f"AWS's signer for sasl_mechanism={SETTING!r}"

    def __init__(self, config: SecurityConfig) -> None:
        if find_spec(SIGNER) is None:
            raise ConfigError(f"sasl_mechanism={SETTING!r} needs the extra 'msk-iam': pip install 'pykafka08[msk-iam]'")
        if config.sasl_msk_iam_profile and config.sasl_msk_iam_role_arn:
            raise ConfigError(
                "give sasl_msk_iam_profile or sasl_msk_iam_role_arn; a profile may name a role itself (role_arn)"
            )
        self._config = config
        self._tokens: dict[str, SharedToken] = {}
        warn_of_clear_text(config)

    def mechanism(self, host: str) -> OAuthBearer:
        region = self._region(host)
        if region not in self._tokens:
            self._tokens[region] = SharedToken(partial(self._made, region), RefreshTimes.of(self._config))
        return OAuthBearer(self._tokens[region].get)

    def _region(self, host: str) -> str:
        found = HOST.search(host)
        region = found[1].lower() if found is not None else self._config.sasl_msk_iam_region
        region = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not region:
            raise _failed(f"the AWS region is not known for {host[:255]}: set sasl_msk_iam_region or AWS_REGION")
        if not REGION.fullmatch(region):
            raise _failed(f"{region[:50]!r} is not an AWS region; see sasl_msk_iam_region and AWS_REGION")
        return region

    async def _made(self, region: str) -> OAuthToken:
        # In a thread: AWS's libraries read files, and ask the instance's metadata service or STS.
        return await anyio.to_thread.run_sync(self._signed, region, abandon_on_cancel=True)

    def _signed(self, region: str) -> OAuthToken:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer

        profile, role = self._config.sasl_msk_iam_profile, self._config.sasl_msk_iam_role_arn
        session_name = self._config.sasl_msk_iam_role_session_name
        with _Quiet():
            try:
                if role:
                    named = [session_name] if session_name else []
                    token, expiry_ms = Signer.generate_auth_token_from_role_arn(region, role, *named)
                elif profile:
                    token, expiry_ms = Signer.generate_auth_token_from_profile(region, profile)
                else:
                    token, expiry_ms = Signer.generate_auth_token(region)
            except Exception as error:  # noqa: BLE001 - AWS's libraries have errors of many kinds
                raise _explained(error) from None
        return OAuthToken(token, expiry_ms / 1000)


def login_of(config: SecurityConfig) -> AwsMskIamLogin:
    """The login for AWS_MSK_IAM; ConfigError if the extra is not installed."""
    return AwsMskIamLogin(config)


def _explained(error: Exception) -> KafkaError:
    """The typed error for a failure of AWS's libraries."""
    from botocore.exceptions import ConnectionError as AwsConnectionError
    from botocore.exceptions import HTTPClientError, NoCredentialsError

    # The signer reads attributes of None if botocore finds no credentials.
    if isinstance(error, (NoCredentialsError, AttributeError, ValueError)):
        return _failed(
            "no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, sasl_msk_iam_profile, or "
            "give the instance or container a role"
        )
    text = "".join(each if each.isprintable() else "?" for each in str(error)[:LONGEST_REASON])
    if isinstance(error, (HTTPClientError, AwsConnectionError)):
        return TransportError(f"{SETTING}: AWS does not answer: {text}")
    return _failed(f"no AWS credentials: {type(error).__name__}: {text}")


def _failed(text: str) -> AuthenticationError:
    return AuthenticationError(f"{SETTING}: {text}", mechanism=SETTING)


class _Quiet(logging.Filter):
    """Inside its block, log lines of AWS's libraries from this thread are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self._loggers: list[logging.Logger] = []

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread

    def __enter__(self) -> None:
        for name, logger in list(logging.root.manager.loggerDict.items()):
            if isinstance(logger, logging.Logger) and name.partition(".")[0] in LIBRARIES:
                logger.addFilter(self)
                self._loggers.append(logger)

    def __exit__(self, *exc_info: object) -> None:
        for logger in self._loggers:
            logger.removeFilter(self)
