"""uv is told what pip is told, or is not asked."""

from __future__ import annotations

import pytest

from infra.run_uv import read_settings


def test_where_files_come_from_is_told() -> None:
    assert read_settings(
        [
            "global.index-url='https://one.example/simple'",
            ":env:.index-url='https://user:word@two.example/simple'",
            "install.extra-index-url='\\nhttps://three.example/simple\\nhttps://four.example/s'",
            "global.find-links='/a /b'",
            ":env:.cert='/certificates.pem'",
            "global.timeout='60'",
            "freeze.timeout='1'",
            "global.disable-pip-version-check='1'",
        ]
    ) == {
        "UV_DEFAULT_INDEX": "https://user:word@two.example/simple",
        "UV_INDEX": "https://three.example/simple https://four.example/s",
        "UV_FIND_LINKS": "/a,/b",
        "SSL_CERT_FILE": "/certificates.pem",
        "UV_HTTP_TIMEOUT": "60",
    }


@pytest.mark.parametrize("name", ["no-index", "proxy", "client-cert", "trusted-host", "constraint"])
def test_what_uv_can_not_be_told_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        read_settings([f"global.{name}='x'"])
