"""A headless Chromium for the pages runlake writes: it counts requests, console messages and dialogs."""

from __future__ import annotations

import base64
import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--hide-scrollbars",
)  # fmt: skip


class Browser:
    """One browser; `open` waits until a page says that all of it is drawn."""

    def __init__(self, profile: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.set_capability("unhandledPromptBehavior", "ignore")
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.driver.get("about:blank")
        self.kept: Path | None = None

    def open(self, page: Path, *, width: int = 1366) -> None:
        """Loads a page; what was logged before is forgotten."""
        self.kept = None
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.look("", "light")
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(page.as_uri())
        self.wait("return document.documentElement.dataset.ready === 'true'")

    def look(self, media: str, scheme: str) -> None:
        """Shows the page as on a screen or paper, in a light or dark scheme."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.cdp("Emulation.setEmulatedMedia", media=media, features=features)

    def keep(self, page: Path) -> None:
        """The page may stay for the next test that only looks at it."""
        self.kept = page

    def is_at(self, page: Path) -> bool:
        """True: the page is open and was kept."""
        return self.kept == page

    def wait(self, script: str, seconds: float = 60) -> None:
        """Until the script says true."""
        end = time.monotonic() + seconds
        while not self.js(script):
            assert time.monotonic() < end, f"not in {seconds} s: {script}; {self.console()}"
            time.sleep(0.05)

    def cdp(self, command: str, **arguments: Any) -> Any:
        """A command of the browser's own protocol."""
        return self.driver.execute_cdp_cmd(command, arguments)

    def js(self, script: str, *arguments: Any) -> Any:
        """The value a script returns."""
        return self.driver.execute_script(script, *arguments)

    def console(self) -> list[str]:
        """What the page wrote to the console, warnings and errors alike."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        made = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                made.append(message["params"]["request"]["url"])
        return made

    def has_dialog(self) -> bool:
        """True: a script asked something (alert, confirm, prompt)."""
        from selenium.common.exceptions import NoAlertPresentException

        try:
            self.driver.switch_to.alert.dismiss()
        except NoAlertPresentException:
            return False
        return True

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.cdp("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """The browser of all tests; without Debian's chromium and chromium-driver they are skipped."""
    pytest.importorskip("selenium", reason="selenium is not installed (pip install 'runlake[test]')")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed (apt-get install chromium chromium-driver)")
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.driver.quit()
