"""Addresses are read in one way or refused, and the studio's own network is closed (CASES S03)."""

from ipaddress import ip_address

import pytest

from base.addresses import Refused, read_place, read_url, refuse_bad


@pytest.mark.parametrize(
    ("url", "place", "target"),
    [
        ("https://mcp.example.org", "mcp.example.org:443", "/"),
        ("https://MCP.Example.org/mcp?a=1", "mcp.example.org:443", "/mcp?a=1"),
        ("http://127.0.0.1:8801/mcp", "127.0.0.1:8801", "/mcp"),
        ("https://[2001:DB8::1]:8443/", "[2001:db8::1]:8443", "/"),
    ],
)
def test_a_plain_address_has_one_spelling(url: str, place: str, target: str):
    read = read_url(url)
    assert (read.place, read.target) == (place, target)
    assert read_url(read.url) == read


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://example.org/",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "//example.org/",
        "example.org",
        "https://",
        "https:///mcp",
        "https://user@example.org/",
        "https://user:pw@example.org/",
        "https://example.org@127.0.0.1/",
        "https://example.org#@127.0.0.1/",
        "https://example.org/#frag",
        "https://exa mple.org/",
        "https://example.org\\@127.0.0.1/",
        "https://example.org/\n",
        "https://localhost./",
        "https://127.0.0.1./",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://127.0.0.256/",
        "https://1.2.3.4.5/",
        "https://%31%32%37.0.0.1/",
        "https://аpple.example/",
        "https://[::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[::g]/",
        "https://example.org:0/",
        "https://example.org:99999/",
        "https://example.org:port/",
        "https://-bad.example/",
        "https://a..b/",
        "https://" + "a" * 300 + ".org/",
        "https://example.org/" + "a" * 3000,
    ],
)
def test_an_odd_spelling_is_refused(url: str):
    with pytest.raises(Refused):
        read_url(url)


INSIDE = ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "::1", "fd00::1"]
NEVER_BY_NAME = [
    "169.254.169.254",
    "fe80::1",
    "fd00:ec2::254",
    "224.0.0.1",
    "ff02::1",
    "0.0.0.0",
    "::",
    "::ffff:127.0.0.1",
]
OTHERS = ["100.64.0.1", "192.0.2.1", "198.18.0.1", "240.0.0.1", "255.255.255.255", "2001:db8::1"]
TRANSLATED = ["::ffff:8.8.8.8", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:53aa:64c:0:fffe:8000:1"]


def reach(url: str, *found: str, allowed: bool = False) -> None:
    refuse_bad(read_url(url), [ip_address(one) for one in found], allowed=allowed)


@pytest.mark.parametrize("address", [*INSIDE, *NEVER_BY_NAME, *OTHERS, *TRANSLATED])
def test_a_name_that_stands_for_no_public_address_is_refused_and_says_what_to_allow(address: str):
    with pytest.raises(Refused, match=r"an admin can allow mcp\.example\.org:443 for the connection at /settings"):
        reach("https://mcp.example.org/", address)
    with pytest.raises(Refused):
        reach("https://mcp.example.org/", "93.184.216.34", address)


@pytest.mark.parametrize("address", INSIDE)
def test_an_allow_list_entry_opens_this_machine_and_private_networks(address: str):
    reach("http://intranet.example:8080/", address, allowed=True)


@pytest.mark.parametrize("address", [*NEVER_BY_NAME, *TRANSLATED])
def test_an_allowed_name_still_never_leads_to_where_clouds_keep_credentials(address: str):
    with pytest.raises(Refused, match="only by its number"):
        reach("http://intranet.example:8080/", address, allowed=True)


def test_an_allowed_number_is_reached_as_it_is():
    reach("http://169.254.10.10:80/", "169.254.10.10", allowed=True)


def test_a_public_address_is_reached_but_not_without_tls():
    reach("https://mcp.example.org/", "93.184.216.34", "2606:2800:220:1::1")
    with pytest.raises(Refused, match="without TLS"):
        reach("http://mcp.example.org/", "93.184.216.34")


@pytest.mark.parametrize(
    "entry", ["127.0.0.1", "http://127.0.0.1:80", "*:80", "a:0", "a:99999", "127.1:80", "u@h:80", ""]
)
def test_an_allow_list_entry_is_exactly_host_and_port(entry: str):
    with pytest.raises(Refused):
        read_place(entry)
    assert read_place(" LocalHost:8801 ") == "localhost:8801"
