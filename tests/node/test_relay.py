"""What a harness program reaches through its one way out: the studio and its model's server, and nothing else."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from jobs.node.relay import PORT, Relay


@contextmanager
def a_server(name: str) -> Iterator[tuple[str, list[str]]]:
    """A server that says its name: its `host:port`, and what it was asked, with its headers."""
    asked: list[str] = []

    class Named(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(f"{self.requestline}\n{self.headers}")
            self.send_response(200)
            self.send_header("Content-Length", str(len(name)))
            self.end_headers()
            self.wfile.write(name.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Named)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def said(relay: Relay, *sent: str) -> str:
    """What comes back for what is sent into the way out; each further text goes once an answer has begun."""

    async def exchange() -> str:
        await relay.open()
        try:
            reader, writer = await asyncio.open_unix_connection(relay.path)
            got = b""
            for place, text in enumerate(sent):
                writer.write(text.encode())
                await writer.drain()
                if place < len(sent) - 1:
                    got += await reader.readuntil(b"\r\n\r\n")
            async with asyncio.timeout(10):
                got += await reader.read(4096)
            writer.close()
            return got.decode()
        finally:
            await relay.close()

    return asyncio.run(exchange())


def head(line: str, host: str = "x", *more: str) -> str:
    return "\r\n".join([line, f"Host: {host}", *more, "", ""])


def test_it_leads_to_the_studio_and_to_the_models_server_as_a_path_a_proxy_or_a_tunnel() -> None:
    with a_server("studio") as (studio, asked), a_server("model") as (model, told):
        relay = Relay((f"http://{studio}/mcp/", f"http://{model}/v1"), (model,))
        assert relay.env["HTTPS_PROXY"] == f"http://127.0.0.1:{studio.rpartition(':')[2]}"
        assert "200" in said(relay, head("GET /mcp/ HTTP/1.1", studio)) and "GET /mcp/ HTTP/1.1" in asked[0]
        assert "200" in said(relay, head(f"GET http://{studio}/mcp/?a=1 HTTP/1.1", studio))
        assert "GET /mcp/?a=1 HTTP/1.1" in asked[1]
        proxied = said(
            relay, head(f"GET http://{model}/v1/x HTTP/1.1", model, "Proxy-Connection: keep-alive", "X-Key: k")
        )
        assert "200" in proxied and "GET /v1/x HTTP/1.1" in told[0] and "X-Key: k" in told[0]
        assert "Proxy-Connection" not in told[0] and "Connection: close" in told[0]
        tunnel = said(relay, head(f"CONNECT {model} HTTP/1.1", model), head("GET /v1/y HTTP/1.1", model))
        assert "200 Connection established" in tunnel and "GET /v1/y HTTP/1.1" in told[1]


def test_it_leads_nowhere_else_and_says_so() -> None:
    with a_server("studio") as (studio, asked), a_server("other") as (other, hits):
        relay = Relay((f"http://{studio}/mcp/",), ())
        for line in (
            f"CONNECT {other} HTTP/1.1",
            f"GET http://{other}/ HTTP/1.1",
            "CONNECT 169.254.169.254:80 HTTP/1.1",
        ):
            answer = said(relay, head(line))
            assert answer.startswith("HTTP/1.1 403") and f"reaches {studio}" in answer
        for odd in ("GET ftp://x/ HTTP/1.1", "nonsense", "CONNECT x HTTP/1.1", f"GET http://u:p@{studio}/ HTTP/1.1"):
            assert said(relay, head(odd)).startswith("HTTP/1.1 403")
        assert not hits and not asked


def test_a_private_address_of_the_models_server_is_reached_only_where_its_connection_allows_it() -> None:
    with a_server("studio") as (studio, _), a_server("model") as (model, told):
        relay = Relay((f"http://{studio}/mcp/", f"http://{model}/"), ())
        assert said(relay, head(f"CONNECT {model} HTTP/1.1")).startswith("HTTP/1.1 403")
        assert not told


@pytest.mark.parametrize("address", ["https://studio.example/mcp/", "http://127.0.0.1/mcp/", "http://studio.lan:8000/"])
def test_a_studio_elsewhere_is_reached_by_a_port_of_the_relays_own(address: str) -> None:
    assert Relay((address,), ()).port == PORT
