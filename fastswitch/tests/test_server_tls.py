"""TLS as simple_switch_grpc's flags give it, with certificates of an authority made here."""

import contextlib
import subprocess
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from fastswitch import flags
from fastswitch.server import P4RuntimeServer
from fastswitch.tests.server_kit import fake_device


class Authority:
    """A certificate authority in a folder. Certificates are for localhost and valid for two days."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.cert, self._key = folder / f"{name}.crt", folder / f"{name}.key"
        self._openssl(
            "req", "-x509", *_NEW_KEY, "-subj", f"/CN={name}", "-days", "2", "-keyout", self._key, "-out", self.cert
        )

    def sign(self, name: str) -> tuple[Path, Path]:
        """A certificate and its key."""
        cert, key, request, extension = (self._folder / f"{name}.{end}" for end in ("crt", "key", "csr", "ext"))
        extension.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        self._openssl("req", "-new", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        authority = ["-CA", self.cert, "-CAkey", self._key, "-CAcreateserial"]
        self._openssl("x509", "-req", "-in", request, *authority, "-days", "2", "-extfile", extension, "-out", cert)
        return cert, key

    @staticmethod
    def _openssl(*arguments: str | Path) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(name="ours", scope="module")
def _ours(folder):
    return Authority(folder, "ours")


@pytest.fixture(name="server", scope="module")
def _server(ours):
    return ours.sign("server")


@pytest.fixture(name="client", scope="module")
def _client(ours):
    return ours.sign("client")


@pytest.fixture(name="stranger", scope="module")
def _stranger(folder):
    return Authority(folder, "theirs").sign("stranger")


def options(server, *more):
    """What plait-switch makes of a command line."""
    cert, key = server
    tls = ["--grpc-server-ssl", "--grpc-server-cert", str(cert), "--grpc-server-key", str(key)]
    return flags.parse(["--no-p4", *tls, *map(str, more)])


@contextlib.asynccontextmanager
async def listening(parsed):
    server = P4RuntimeServer([fake_device()], parsed.tls)
    port = (await server.start(["127.0.0.1:0"]))[0]
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(grace=0)


async def ask(address, root, pair=None):
    """The version that a server at `address` announces to a client that trusts `root` and shows `pair`."""
    cert, key = pair or (None, None)
    credentials = grpc.ssl_channel_credentials(
        root.read_bytes(), key.read_bytes() if key else None, cert.read_bytes() if cert else None
    )
    async with grpc.aio.secure_channel(address, credentials) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        return (await stub.Capabilities(p4r.CapabilitiesRequest(), timeout=10)).p4runtime_api_version


def refusing():
    return pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE")


async def test_a_server_certificate_is_enough(ours, server, client, stranger):
    async with listening(options(server)) as address:
        assert await ask(address, ours.cert) == "1.5.0"
        assert await ask(address, ours.cert, client) == "1.5.0"
        with refusing():
            await ask(address, stranger[0])  # the client does not know the server's authority
        async with grpc.aio.insecure_channel(address) as channel:
            with refusing():
                await p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=10)


async def test_with_client_auth_strangers_are_refused(ours, server, client, stranger):
    parsed = options(server, "--grpc-server-cacert", ours.cert, "--grpc-server-with-client-auth")
    async with listening(parsed) as address:
        assert await ask(address, ours.cert, client) == "1.5.0"
        with refusing():
            await ask(address, ours.cert)
        with refusing():
            await ask(address, ours.cert, stranger)


async def test_an_authority_alone_demands_nothing_of_clients(ours, server, client):
    async with listening(options(server, "--grpc-server-cacert", ours.cert)) as address:
        assert await ask(address, ours.cert) == "1.5.0"
        assert await ask(address, ours.cert, client) == "1.5.0"


def test_files_that_do_not_fit_are_named(folder, ours, server, client):
    cert, key = server
    with pytest.raises(flags.UsageError, match=f"{cert} holds no certificate that fits the key {client[1]}"):
        options((cert, client[1]))
    with pytest.raises(flags.UsageError, match=f"{folder / 'none.crt'} does not exist or is no file"):
        options((folder / "none.crt", key))
    with pytest.raises(flags.UsageError, match=f"{folder} does not exist or is no file"):
        options((cert, folder))
    with pytest.raises(flags.UsageError, match=f"{folder / 'none.pem'} does not exist or is no file"):
        options(server, "--grpc-server-cacert", folder / "none.pem")
    with pytest.raises(flags.UsageError, match=f"{key} holds no certificate of an authority"):
        options(server, "--grpc-server-cacert", key)
    with pytest.raises(flags.UsageError, match="--grpc-server-with-client-auth needs --grpc-server-cacert"):
        options(server, "--grpc-server-with-client-auth")
    with pytest.raises(flags.UsageError, match="--grpc-server-cacert needs --grpc-server-ssl"):
        flags.parse(["--no-p4", "--grpc-server-cacert", str(ours.cert)])
