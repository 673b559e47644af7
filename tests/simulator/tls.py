"""An authority of its own and a certificate for the loopback address, for the programs that ask for https."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def authority(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """The path of the authority's certificate, to be trusted by clients, and a server's context for 127.0.0.1.

    `names`: hosts that it stands for as well, where a test leads them here.
    """
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name, name = _name("Conch simulator authority"), _name("localhost")
    identifier = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        _certificate(ca_name, ca_name, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(identifier, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    named = [x509.DNSName(each) for each in ("localhost", *names)]
    addresses = [*named, x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    certificate = (
        _certificate(name, ca_name, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    ca_path, chain = folder / "ca.pem", folder / "server.pem"
    ca_path.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    chain.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return ca_path, context


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
    )
