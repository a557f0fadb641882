"""A real browser for tests of pages: Debian's Chromium by its driver, spoken to in WebDriver's own
protocol (W3C), which is JSON over HTTP. `make browser` puts both into .leasehold/browser."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from infra.ports import LOOPBACK, find_free_port
from leasehold.adapters.os.clock import boottime_ns

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / ".leasehold" / "browser"
AXE: Final = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
ELEMENT: Final = "element-6066-11e4-a52e-4f735466cecf"
START_S: Final = 60.0
WAIT_S: Final = 45.0
WIDE: Final = (1280, 1000)
NARROW: Final = (390, 844)
AXE_TAGS: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def find_program(name: str) -> str | None:
    """Return where a program of the browser is: the system's, or the one unpacked here."""
    own = FOLDER / "root" / "usr" / "bin" / name
    return shutil.which(name) or (str(own) if own.exists() else None)


def missing() -> str:
    """Return what is not there, "" where a browser can be used."""
    for name in ("chromium", "chromedriver"):
        if find_program(name) is None:
            return f"{name} is not there: make browser"
    return "" if AXE.exists() else "axe-core is not there: make browser"


class Browser:
    """A window of a browser. Methods raise AssertionError with what the driver says."""

    def __init__(self, url: str, profile: Path, *, dark: bool = False) -> None:
        self._url = url
        binary = find_program("chromium")
        library = FOLDER / "root" / "usr" / "lib" / "chromium" / "chromium"
        if binary is not None and binary.startswith(str(FOLDER)):
            binary = str(library)  # its wrapper looks in the system's own folders
        options = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *(f"--user-data-dir={profile}", "--force-prefers-reduced-motion", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--lang=en-GB"),
            *(("--blink-settings=preferredColorScheme=0",) if dark else ()),
        ]
        asked = {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": binary, "args": options},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": asked}})
        self._session = f"/session/{made['sessionId']}"

    def close(self) -> None:
        self._ask("DELETE", self._session)

    def go(self, address: str) -> None:
        self._ask("POST", f"{self._session}/url", {"url": address})

    def resize(self, width: int, height: int) -> None:
        self._ask("POST", f"{self._session}/window/rect", {"width": width, "height": height})

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns, or its promise comes to."""
        fields = {"script": script, "args": list(arguments)}
        return self._ask("POST", f"{self._session}/execute/sync", fields)

    def wait(self, condition: str, why: str = "", wait_s: float = WAIT_S) -> Any:
        """Return what an expression of the page says, once that is true."""
        give_up_ns = boottime_ns() + int(wait_s * 1e9)
        while not (found := self.run(f"return ({condition})")):
            assert boottime_ns() < give_up_ns, f"{why or condition}:\n{self.text()}"
        return found

    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def click(self, selector: str) -> None:
        self._ask("POST", f"{self._session}/element/{self._find(selector)}/click", {})

    def press(self, selector: str, keys: str) -> None:
        """Type into an element."""
        found = self._find(selector)
        self._ask("POST", f"{self._session}/element/{found}/value", {"text": keys})

    def screenshot(self, path: Path) -> None:
        """Write the whole page as an image."""
        height = self._command("Page.getLayoutMetrics")["cssContentSize"]["height"]
        width = self.run("return innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = self._command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(data["data"]))

    def _command(self, name: str, **parameters: Any) -> Any:
        fields = {"cmd": name, "params": parameters}
        return self._ask("POST", f"{self._session}/goog/cdp/execute", fields)

    def messages(self) -> list[str]:
        """Return what the console was told since the last look, at any level but the finest."""
        found = self._ask("POST", f"{self._session}/se/log", {"type": "browser"})
        return [f"{each['level']}: {each['message']}" for each in found if each["level"] != "DEBUG"]

    def faults(self) -> list[str]:
        """Return what axe-core finds wrong with the page: rule, words, where."""
        self.run(AXE.read_text("utf-8") + "; window.axe = axe;")
        found = self.run(
            "return axe.run(document, {runOnly: arguments[0]}).then((told) => told.violations.map("
            "(each) => `${each.id}: ${each.help}: ${each.nodes.map((node) => node.html + ' ' +"
            " (node.any[0] || node.all[0] || node.none[0] || {}).message).join(' | ')}`))",
            list(AXE_TAGS),
        )
        return list(found)

    def _find(self, selector: str) -> str:
        fields = {"using": "css selector", "value": selector}
        return str(self._ask("POST", f"{self._session}/element", fields)[ELEMENT])

    def _ask(self, method: str, path: str, fields: Any = None) -> Any:
        data = None if fields is None else json.dumps(fields).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as error:
            told = json.loads(error.read())["value"]
            raise AssertionError(f"{told['error']}: {told['message'][:1500]}") from None


@contextmanager
def browsing(folder: Path, *, dark: bool = False) -> Iterator[Browser]:
    """Yield a window of a new browser, which ends with it, and with all of its processes."""
    port = find_free_port()
    driver = find_program("chromedriver")
    assert driver is not None, missing()
    own = FOLDER / "root"
    system = own / "usr/lib/x86_64-linux-gnu"
    libraries = [str(system), str(system / "pulseaudio"), str(own / "usr/lib/chromium")]
    environment = {
        **os.environ,
        "HOME": str(folder),
        "LD_LIBRARY_PATH": os.pathsep.join(libraries) if driver.startswith(str(own)) else "",
    }
    with (folder / "driver.log").open("wb") as log:
        process = subprocess.Popen(
            [driver, f"--port={port}"], env=environment, stdout=log, stderr=log
        )
        try:
            _wait_for(port, process, folder)
            browser = Browser(f"http://{LOOPBACK}:{port}", folder / "profile", dark=dark)
            try:
                browser.resize(*WIDE)
                yield browser
            finally:
                browser.close()
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    give_up_ns = boottime_ns() + int(START_S * 1e9)
    while True:
        assert process.poll() is None, (folder / "driver.log").read_text()
        assert boottime_ns() < give_up_ns, (folder / "driver.log").read_text()
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/status", timeout=5):
                return
        except OSError:
            continue
