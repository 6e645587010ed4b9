"""No proxy between the tests and their own servers."""

import os

import pytest


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
