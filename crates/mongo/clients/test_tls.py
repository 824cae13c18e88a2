"""TLS, through the driver, with certificates made for the test."""

import signal

import pymongo
import pytest
import trustme
from pymongo.errors import ServerSelectionTimeoutError

from conftest import Running


@pytest.fixture
def files(tmp_path):
    """A server's certificate with its key, a client's, and the one that signs them."""
    ca = trustme.CA()
    for name in ("server", "client"):
        ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / f"{name}.pem")
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    return lambda name: str(tmp_path / name)


def client(running, **options):
    return pymongo.MongoClient("127.0.0.1", running.port, serverSelectionTimeoutMS=2_000, **options)


def test_documents_go_over_tls(files):
    running = Running(files("data"), "--tls-certificate-key-file", files("server.pem"))
    with client(running, tls=True, tlsCAFile=files("ca.pem"), compressors="zlib") as secure:
        documents = [{"_id": n, "text": str(n) * 20_000} for n in range(200)]
        secure.test.c.insert_many(documents)
        assert list(secure.test.c.find()) == documents
    # Neither who speaks plainly nor who does not know the certificate gets through.
    for options in ({}, {"tls": True}):
        with client(running, **options) as other, pytest.raises(ServerSelectionTimeoutError):
            other.test.c.find_one()
    assert running.end(signal.SIGTERM) == 0


def test_clients_show_certificates(files):
    flags = ["--tls-certificate-key-file", files("server.pem"), "--tls-ca-file", files("ca.pem")]
    running = Running(files("data"), *flags)
    trust = {"tls": True, "tlsCAFile": files("ca.pem")}
    with client(running, **trust, tlsCertificateKeyFile=files("client.pem")) as known:
        known.test.c.insert_one({"_id": 1})
    with client(running, **trust) as stranger, pytest.raises(ServerSelectionTimeoutError):
        stranger.test.c.find_one()
    assert running.end(signal.SIGTERM) == 0
    running.flags = [*flags, "--tls-allow-connections-without-certificates", "--tls-mode", "allow"]
    running.start()
    for options in (trust, {}):
        with client(running, **options) as anybody:
            assert anybody.test.c.find_one() == {"_id": 1}
    assert running.end(signal.SIGTERM) == 0
