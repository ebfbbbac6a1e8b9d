"""Names of certificates, as ``X500Principal.getName()`` of JDK 17 writes them for the same certificates."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import Name, NameAttribute, NameOID, RelativeDistinguishedName
from cryptography.x509.name import _ASN1Type as Type

from pykafka08.broker.security.distinguished_name import subject_name
from pykafka08.broker.security.mechanisms import Refused

C, O, CN, UID = NameOID.COUNTRY_NAME, NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME, NameOID.USER_ID  # noqa: E741


def certificate(subject: Name) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(Name([]), subject, key.public_key(), 7, now, now + datetime.timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def single(text: str, kind: Type | None = None) -> list[NameAttribute]:
    return [NameAttribute(CN, text, kind)]


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ([], ""),
        (single("alice"), "CN=alice"),
        (
            [NameAttribute(C, "DE"), NameAttribute(O, 'Ex, Inc. "q" <a>;b\\c+d=#e'), NameAttribute(CN, " #alice ")],
            r"CN=\ \#alice\ ,O=Ex\, Inc. \"q\" \<a\>\;b\\c\+d\=\#e,C=DE",
        ),
        (single("ü€\U0001f600"), "CN=ü€\U0001f600"),
        (single("  "), r"CN=\ \ "),
        (single("\r x\n "), "CN=\\\r\\ x\n\\ "),
        (single("a\0b"), r"CN=a\00b"),
        (single("ab", Type.BMPString), r"CN=\00a\00b"),
        (single("12", Type.NumericString), "CN=#12023132"),
        ([NameAttribute(NameOID.TITLE, "t"), *single("x")], "CN=x,2.5.4.12=#0c0174"),
        ([NameAttribute(x509.ObjectIdentifier("2.999.300.1"), "x"), *single("x")], "CN=x,2.999.300.1=#0c0178"),
        ([NameAttribute(NameOID.EMAIL_ADDRESS, "a@b", Type.IA5String)], "1.2.840.113549.1.9.1=#1603614062"),
        (
            [
                NameAttribute(NameOID.DOMAIN_COMPONENT, "com"),
                NameAttribute(NameOID.STATE_OR_PROVINCE_NAME, "st"),
                NameAttribute(NameOID.LOCALITY_NAME, "l"),
                NameAttribute(NameOID.STREET_ADDRESS, "s"),
                NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "ou"),
            ],
            "OU=ou,STREET=s,L=l,ST=st,DC=com",
        ),
        (single("x" * 64) + [NameAttribute(O, "y" * 64)] * 2, f"O={'y' * 64},O={'y' * 64},CN={'x' * 64}"),
    ],
)
def test_names_are_those_of_java(attributes: list[NameAttribute], name: str) -> None:
    assert subject_name(certificate(Name(attributes))) == name


def test_attributes_of_one_relative_name_keep_their_order() -> None:
    subject = Name([RelativeDistinguishedName([NameAttribute(CN, "a"), NameAttribute(UID, "u")])])
    assert subject_name(certificate(subject)) == "CN=a+UID=u"


@pytest.mark.parametrize("size", [0, 1, 10, 60])
def test_a_certificate_that_is_cut_off_is_an_error(size: int) -> None:
    with pytest.raises(Refused, match="no readable subject"):
        subject_name(certificate(Name(single("alice")))[:size])
