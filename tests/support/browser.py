"""A browser without a screen, driven over its own pipe: what a page logs, asks for, and how wide it is."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import json

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """An open browser with one page."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._rest = read, write, b""
        self._count = 0
        self.events: list[dict[str, Any]] = []
        target = self._ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the page; events that come before its answer are kept."""
        return self._ask(method, parameters, self._session)

    def show(self, page: Path, width: int, *, dark: bool = False) -> None:
        """Open a page at a width, and wait until it is loaded."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def value(self, expression: str) -> Any:
        """Return the value of an expression on the page."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def said(self) -> list[str]:
        """What the page wrote to the console, and what the browser complained of."""
        return [
            str(event) for event in self.events if event["method"] in {"Runtime.consoleAPICalled", "Log.entryAdded"}
        ]

    def asked(self) -> list[str]:
        """The addresses that the page asked for."""
        sent = [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in sent if not url.startswith("data:")]

    def _ask(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        os.write(self._write, json.encode(message | ({"sessionId": session} if session else {})) + b"\0")
        while (found := self._next()).get("id") != self._count:
            self.events.append(found)
        assert "error" not in found, found
        result: dict[str, Any] = found["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 16)
            assert more, "the browser has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.decode(line)
        return found


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser, and end it."""
    assert CHROMIUM is not None
    hears, tells = os.pipe(), os.pipe()  # the browser reads from file descriptor 3, and writes to 4
    # A process of the browser that is being killed may still write into the folder while it is removed.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        shell = f'exec "$0" "$@" 3<&{hears[0]} 4>&{tells[1]}'
        command = ["bash", "-c", shell, CHROMIUM, *_QUIET, f"--user-data-dir={folder}"]
        fds, place = (hears[0], tells[1]), os.environ | {"TMPDIR": folder}  # it leaves files behind when it is killed
        process = subprocess.Popen(command, pass_fds=fds, stderr=subprocess.DEVNULL, start_new_session=True, env=place)
        os.close(hears[0])
        os.close(tells[1])
        try:
            yield Browser(tells[0], hears[1])
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(tells[0])
            os.close(hears[1])
