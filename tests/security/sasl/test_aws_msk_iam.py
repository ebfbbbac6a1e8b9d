"""IAM of Amazon MSK: tokens whose signatures are computed again here, regions, and credentials that are not there."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import time
import traceback
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from pykafka08.errors import AuthenticationError, ConfigError, TransportError
from pykafka08.security.sasl import aws_msk_iam
from pykafka08.security.sasl.login import Login, login_of
from pykafka08.security.settings import SecurityConfig
from tests.security.secrets_found import SecretSearch

pytestmark = pytest.mark.anyio

BROKER = "b-1.orders.abc123.c2.kafka.eu-west-1.amazonaws.com"
KEY_ID, KEY, SESSION = "AKIDEXAMPLE0000000001", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token+of=sts"
DAY = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """Credentials in the environment, and no others to be found."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    return monkeypatch


def login(**settings: Any) -> Login:
    given = {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM", **settings}
    return login_of(SecurityConfig(**given))


async def signed_url(host: str = BROKER, **settings: Any) -> str:
    """The URL inside the token."""
    exchange = login(**settings).mechanism(host)
    message = await exchange.respond(None)
    assert message is not None
    assert await exchange.respond(b"") is None
    token = message.decode().removeprefix("n,,\x01auth=Bearer ").removesuffix("\x01\x01")
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


def signature(url: str, key: str) -> str:
    """Signature version 4 of a presigned URL, from AWS's description of it."""
    parts = urlsplit(url)
    fields = [pair for pair in parse_qsl(parts.query) if pair[0] not in ("X-Amz-Signature", "User-Agent")]
    query = "&".join(sorted(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in fields))
    payload = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{query}\nhost:{parts.netloc}\n\nhost\n{payload}"
    named = dict(fields)
    scope = named["X-Amz-Credential"].partition("/")[2]
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{named['X-Amz-Date']}\n{scope}\n{digest}"
    signer = f"AWS4{key}".encode()
    for part in scope.split("/"):
        signer = hmac.digest(signer, part.encode(), "sha256")
    return hmac.new(signer, text.encode(), "sha256").hexdigest()


async def test_the_token_is_a_signed_url_in_the_mechanism_oauthbearer() -> None:
    assert login().name == "OAUTHBEARER"
    url = await signed_url()
    fields = dict(parse_qsl(urlsplit(url).query))
    assert urlsplit(url)[:3] == ("https", "kafka.eu-west-1.amazonaws.com", "/")
    assert fields["Action"] == "kafka-cluster:Connect"
    assert fields["X-Amz-Expires"] == "900"
    assert fields["X-Amz-Security-Token"] == SESSION
    signed_at = datetime.strptime(fields["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    assert abs(signed_at.timestamp() - time.time()) < 60
    assert fields["X-Amz-Credential"] == f"{KEY_ID}/{signed_at:%Y%m%d}/eu-west-1/kafka-cluster/aws4_request"
    assert fields["X-Amz-Signature"] == signature(url, KEY)


@pytest.mark.parametrize(
    ("host", "environment", "setting", "region"),
    [
        (BROKER, "us-east-1", "us-east-2", "eu-west-1"),
        ("boot-x.c1.kafka-serverless.ap-southeast-2.amazonaws.com", None, None, "ap-southeast-2"),
        ("b-1.x.kafka.cn-north-1.amazonaws.com.cn.", None, None, "cn-north-1"),
        ("kafka.internal", "us-gov-west-1", None, "us-gov-west-1"),
        ("10.0.0.7", "us-east-1", "eu-central-1", "eu-central-1"),
    ],
)
async def test_the_region(
    host: str, environment: str | None, setting: str | None, region: str, aws: pytest.MonkeyPatch
) -> None:
    if environment:
        aws.setenv("AWS_REGION", environment)
    url = await signed_url(host, sasl_msk_iam_region=setting)
    assert urlsplit(url).netloc == f"kafka.{region}.amazonaws.com"


@pytest.mark.parametrize(
    ("region", "text"), [(None, "set sasl_msk_iam_region or AWS_REGION"), ("evil.example/", "not")]
)
def test_no_region(region: str | None, text: str) -> None:
    with pytest.raises(AuthenticationError, match=text):
        login(sasl_msk_iam_region=region).mechanism("10.0.0.7")


async def test_a_profile(aws: pytest.MonkeyPatch, tmp_path: Path) -> None:
    aws.delenv("AWS_SESSION_TOKEN")
    lines = "[other]\naws_access_key_id = AKIDOTHER\naws_secret_access_key = other-key\n"
    (tmp_path / "credentials").write_text(lines)
    url = await signed_url(sasl_msk_iam_profile="other")
    assert "X-Amz-Credential=AKIDOTHER%2F" in url
    assert dict(parse_qsl(urlsplit(url).query))["X-Amz-Signature"] == signature(url, "other-key")
    with pytest.raises(AuthenticationError, match=r"ProfileNotFound: .*nobody"):
        await signed_url(sasl_msk_iam_profile="nobody")


async def test_a_role(aws: pytest.MonkeyPatch) -> None:
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider

    asked = []

    def of_role(*arguments: str) -> tuple[str, int]:
        asked.append(arguments)
        return "token", int(time.time() * 1000) + 900_000

    aws.setattr(MSKAuthTokenProvider, "generate_auth_token_from_role_arn", of_role)
    role = "arn:aws:iam::123456789012:role/reader"
    for name in (None, "me"):
        own = login(sasl_msk_iam_role_arn=role, sasl_msk_iam_role_session_name=name)
        for _ in range(2):
            assert await own.mechanism(BROKER).respond(None) == b"n,,\x01auth=Bearer token\x01\x01"
    assert asked == [("eu-west-1", role), ("eu-west-1", role, "me")]


async def test_no_credentials_and_an_aws_that_is_away(aws: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        aws.delenv(name)
    with pytest.raises(AuthenticationError, match="no AWS credentials were found: set AWS_ACCESS_KEY_ID"):
        await signed_url()

    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    from botocore.exceptions import EndpointConnectionError

    def away(region: str) -> None:
        raise EndpointConnectionError(endpoint_url="https://sts.amazonaws.com")

    aws.setattr(MSKAuthTokenProvider, "generate_auth_token", away)
    with pytest.raises(TransportError, match=r"sts\.amazonaws\.com"):
        await signed_url()


def test_settings_without_a_meaning(aws: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="sasl_msk_iam_profile or sasl_msk_iam_role_arn"):
        login(sasl_msk_iam_profile="p", sasl_msk_iam_role_arn="arn:aws:iam::1:role/r")
    aws.setattr(aws_msk_iam, "SIGNER", "no_such_package")
    with pytest.raises(ConfigError, match=r"pip install 'pykafka08\[msk-iam\]'"):
        login()


async def test_javas_configurations() -> None:
    module = "software.amazon.msk.auth.iam"
    for settings in (
        {
            "sasl_jaas_config": f"{module}.IAMLoginModule required;",
            "sasl_client_callback_handler_class": f"{module}.IAMClientCallbackHandler",
        },
        {
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_login_callback_handler_class": f"{module}.IAMOAuthBearerLoginCallbackHandler",
            "sasl_jaas_config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        },
    ):
        assert (await signed_url(**settings)).startswith("https://kafka.eu-west-1.amazonaws.com/?Action=")


async def test_nothing_of_the_token_is_shown(caplog: pytest.LogCaptureFixture, aws: pytest.MonkeyPatch) -> None:
    """AWS's libraries log signatures and session tokens on the level DEBUG."""
    caplog.set_level(logging.DEBUG)
    search = SecretSearch(KEY, SESSION)
    with search.of_logs():
        url = await signed_url()
    search.of_objects("the login", login())
    hidden = (KEY, SESSION, quote(SESSION, safe=""), dict(parse_qsl(urlsplit(url).query))["X-Amz-Signature"])
    assert [word for word in hidden if word in caplog.text] == []
    logging.getLogger("botocore.auth").debug("heard again")
    assert "heard again" in caplog.text

    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider

    def fails(region: str) -> None:
        raise RuntimeError(json.dumps({"Code": "AccessDenied"}))

    aws.setattr(MSKAuthTokenProvider, "generate_auth_token", fails)
    with pytest.raises(AuthenticationError, match="AccessDenied") as caught:
        await signed_url()
    assert not [word for word in hidden if word in "".join(traceback.format_exception(caught.value))]
    search.of_error("a refused request", caught.value)
    assert search.found == []
