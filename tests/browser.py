"""Headless Chromium for tests, driven by its DevTools protocol over a pipe: no other package is needed."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe", "--window-size=1600,1000",
]  # fmt: skip
PATIENCE = 30.0  # seconds to wait for an answer


class Browser:
    """A browser with one page at a time. `errors` are those of the page's console, and exceptions of its scripts."""

    def __init__(self) -> None:
        assert CHROMIUM is not None
        self._folder = tempfile.TemporaryDirectory()
        (theirs, self._in), (self._out, back) = os.pipe(), os.pipe()

        def place() -> None:  # Chromium reads commands from 3 and writes answers to 4
            spare = os.dup(theirs), os.dup(back)
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        os.close(back)
        self._number, self._buffer = 0, b""
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.contexts: list[dict[str, Any]] = []
        page = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | ({"sessionId": self._session} if self._session else {})
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._out], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            self._buffer += os.read(self._out, 1 << 20)
        text, self._buffer = self._buffer.split(b"\0", 1)
        out: dict[str, Any] = json.loads(text)
        return out

    def _note(self, event: dict[str, Any]) -> None:
        params, method = event.get("params", {}), event.get("method", "")
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:800])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(json.dumps(params["args"])[:800])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.executionContextCreated":
            self.contexts.append(params["context"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path: Path) -> None:
        self.errors.clear()
        self.requests.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        until = time.monotonic() + PATIENCE
        ready = f"location.href === {json.dumps(path.resolve().as_uri())} && document.documentElement?.dataset.ready"
        while self.js(ready) != "yes":
            assert time.monotonic() < until, f"the page was not ready: {self.errors}"
            time.sleep(0.02)

    def js(self, expression: str, **where: Any) -> Any:
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, **where)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def js_in_frame(self, expression: str) -> Any:
        """The same in the frame inside the page, which may be a separate process."""
        until, page = time.monotonic() + PATIENCE, self._session
        while True:
            own = [t["targetId"] for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "iframe"]
            if own:
                self._session = self.send("Target.attachToTarget", targetId=own[-1], flatten=True)["sessionId"]
                try:
                    return self.js(expression)
                finally:
                    self._session = page
            children = [c["frame"]["id"] for c in self.send("Page.getFrameTree")["frameTree"].get("childFrames", ())]
            found = [c["id"] for c in self.contexts if c["auxData"].get("frameId") in children]
            if found:
                return self.js(expression, contextId=found[-1])
            assert time.monotonic() < until, "the frame runs no script"
            time.sleep(0.02)

    def metric(self, name: str) -> float:
        """One of the figures of the `Performance` domain."""
        found: list[dict[str, Any]] = self.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in found if each["name"] == name))

    def key(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def move(self, selector: str, click: bool = False) -> None:
        """Move the mouse over an element, and click it."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.js(f"{element}.scrollIntoView({{block: 'center', inline: 'start'}})")
        self.js("new Promise(done => setTimeout(done, 50))")  # until it is laid out
        box = self.js(f"(r => [r.x + Math.min(r.width / 2, 60), r.y + r.height / 2])({element}.getBoundingClientRect())")
        where = {"x": box[0], "y": box[1], "button": "left" if click else "none", "clickCount": 1 if click else 0}
        self.send("Input.dispatchMouseEvent", **where | {"type": "mouseMoved", "button": "none"})
        if click:
            self.send("Input.dispatchMouseEvent", **where | {"type": "mousePressed"})
            self.send("Input.dispatchMouseEvent", **where | {"type": "mouseReleased"})

    def screenshot(self, path: Path) -> None:
        import base64

        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))

    def theme(self, name: str) -> None:
        """Set the colour scheme that the user's system prefers."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()
