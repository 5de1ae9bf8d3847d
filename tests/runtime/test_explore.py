"""The explorer page, in a real browser: links between panes, themes, keys, large programs, hostile names."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from functools import reduce
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from adjit.runtime.explore import deltas, explore, figures
from adjit.runtime.profile import walk
from tests.browser import CHROMIUM, Browser
from tests.examples import EXAMPLES, captured

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian's package: chromium)")
OFTEN = ("linear_regression", "newton", "rnn")  # the examples whose pages are opened in every run; ADJIT_PAGES=all opens all
SHOWN = EXAMPLES if os.environ.get("ADJIT_PAGES") == "all" else [e for e in EXAMPLES if e.stem in OFTEN]

W = aj.Variable(np.ones((256, 64), "f4"), name="W")


@aj.function
def step(x: Any, y: Any) -> Any:
    with aj.GradientTape() as tape:
        h = np.tanh(x @ W)
        total = 0.0
        for k in aj.range(3):
            total = total + np.sum(h) * k
        loss = np.mean((h - y) ** 2) + 0.01 * total
    W.assign_sub(0.1 * tape.gradient(loss, W))
    return loss


X, Y = np.ones((128, 256), "f4"), np.zeros((128, 64), "f4")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return step.explore(X, Y, path=tmp_path_factory.mktemp("explore") / "page.html", open=False)


def data_of(path: Path) -> Any:
    packed = re.search(r'^const PACKED = "(.*)";$', path.read_text(encoding="utf-8"), re.MULTILINE)[1]  # type: ignore[index]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


# ---- the collected data


def test_the_page_is_one_file_and_changes_no_variable(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)=|https?://(?!www\.w3\.org/2000/svg")|@import|url\(', text)
    assert len(text) < 1_000_000
    assert np.all(W.numpy() == 1.0)


def test_lines_link_to_ops_and_kernels_to_assembly(page: Path) -> None:
    data = data_of(page)
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    first = line_of("h = np.tanh")
    computing = {first, first + 3, first + 4, first + 5}
    linked = {int(k.partition(":")[2]) for line in data["stages"]["traced"] for k in line.get("k", ())}
    assert computing <= linked
    assert data["kernels"]
    for kernel in data["kernels"]:
        assert kernel["asm"].strip(), kernel["name"]
        assert f"@{kernel['name']}(" in kernel["llvm"]
        assert kernel["keys"]
    assert all(entry["kernel"] is not None for entry in data["profile"] if not entry["name"].startswith("copy"))
    (file,) = (f for f in data["files"] if f["name"] == "test_explore.py")
    assert file["lines"][first - file["first"]] == source[first - 1]


@pytest.fixture(scope="module")
def fine_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A page with the lines of instructions."""
    aj.config.debug_lines = True
    yield aj.function(step.python_function).explore(X, Y, path=tmp_path_factory.mktemp("explore") / "fine.html", open=False)
    aj.config.debug_lines = False
    Path(f"/tmp/perf-{os.getpid()}.map").unlink(missing_ok=True)


def test_with_debug_lines_instructions_link_to_lines(page: Path, fine_page: Path) -> None:
    assert all(kernel["places"] == [] for kernel in data_of(page)["kernels"])
    kernels = data_of(fine_page)["kernels"]
    for kernel in kernels:
        assert len(kernel["places"]) in (0, kernel["asm"].count("\n") + 1)
        assert set(filter(None, kernel["places"])) <= set(kernel["keys"]), kernel["name"]
    assert any(len(set(filter(None, kernel["places"]))) > 1 for kernel in kernels)


def test_passes_can_be_put_together_again() -> None:
    seen = step.inspect(X, Y)
    entries = deltas([{"name": p.name, "lines": p.text.splitlines()} for p in seen.passes])
    before: list[str] = []
    for entry, p in zip(entries, seen.passes, strict=True):
        before = [before[x] if isinstance(x, int) else x for x in entry["lines"]]
        assert before == p.text.splitlines()


def test_figures_of_odd_arrays() -> None:
    assert figures(np.array([1.0, np.nan, np.inf]))["nan"] == 1
    assert figures(np.array([np.nan]))["inf"] == 0
    for a in (np.zeros(0), np.array(True), np.arange(3, dtype="u1"), np.array(1 + 2j), np.full(3, np.inf)):
        json.dumps(figures(a), allow_nan=False)


def test_notebooks_show_the_page_in_a_frame() -> None:
    html = step.inspect(X, Y)._repr_html_()
    assert html is not None
    assert html.startswith('<iframe srcdoc="&lt;!doctype html')
    assert 'sandbox="allow-scripts"' in html
    assert "adjit explore" in unescape(html)


# ---- in the browser


PANES = ("source", "program", "graph", "cost", "native", "memory")
# the highlighted parts, and the expected ones: those of the same lines in all panes
MARKED = "[...panes.keys()].filter(pane => document.querySelector(`#${pane} .%s`))"
RELATED = "[...panes].filter(([_, table]) => %s.some(key => table.has(key))).map(([pane]) => pane)"


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(Path(__file__).read_text(encoding="utf-8").splitlines(), 1) if text in line)


@needs_browser
def test_instructions_have_the_colours_of_their_lines(browser: Browser, fine_page: Path) -> None:
    kernels = data_of(fine_page)["kernels"]
    number = max(range(len(kernels)), key=lambda k: len(set(filter(None, kernels[k]["places"]))))
    places = sorted(set(filter(None, kernels[number]["places"])))
    browser.open(fine_page)
    browser.js(f"source({places[0].partition(':')[0]}); kernel({number})")
    tint = "document.querySelector('#%s [data-keys=\"%s\"][style]').style.boxShadow"
    colours = [browser.js(tint % ("source", place)) for place in places]
    assert colours == [browser.js(tint % ("native", place)) for place in places]
    assert len(set(colours)) == len(places) > 1
    browser.move(f'#native [data-keys="{places[0]}"][style]', click=True)
    assert browser.js("current") == number
    assert browser.js("pinned") == [places[0]]
    assert browser.errors == []


@needs_browser
@pytest.mark.parametrize("click", [False, True], ids=["hover", "click"])
def test_every_pane_links_to_all_others(browser: Browser, page: Path, click: bool) -> None:
    browser.open(page)
    first = {"source": f'#source [data-line="{line_of("h = np.tanh")}"]'}
    for pane in PANES:
        browser.key("Escape")
        browser.move("header")
        browser.js("program('forward')")
        browser.move(first.get(pane, f"#{pane} [data-keys]"), click=click)
        hovered = "[...document.querySelectorAll(':hover')].map(e => e.dataset.keys).filter(Boolean).pop().split(' ')"
        keys = browser.js("pinned" if click else hovered)
        marked = browser.js(MARKED % ("pin" if click else "hi"))
        assert set(marked) == set(browser.js(RELATED % json.dumps(keys))), f"from {pane}"
        assert {"source", "program"} <= set(marked), f"from {pane}"
        assert browser.js(f"shown.every(e => e.dataset.keys.split(' ').some(k => {json.dumps(keys)}.includes(k)))")
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith(("file:", "blob:"))] == []


@needs_browser
def test_a_click_pins_and_shows_the_kernel(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.move("#cost tr:nth-child(2)", click=True)
    assert browser.js("document.querySelectorAll('.pin').length") > 1
    wanted = browser.js("D.kernels[+document.querySelector('#cost tr:nth-child(2)').dataset.kernel].name")
    assert browser.js("document.querySelector('#native b').textContent") == wanted
    browser.move("header")
    assert browser.js("document.querySelectorAll('.pin').length") > 1
    browser.key("Escape")
    assert browser.js("document.querySelectorAll('.pin').length") == 0


@needs_browser
def test_regions_can_be_folded(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.js("program('forward')")
    shown = "[...document.querySelectorAll('#program > div')].filter(e => !e.hidden).map(e => e.textContent)"
    before = browser.js(shown)
    browser.js("[...document.querySelectorAll('#program .fold')].find(b => b.parentElement.textContent.includes(' for ')).id = 'loop'")
    browser.move("#loop", click=True)
    (head,) = (k for k, text in enumerate(before) if " for " in text)
    end = next(k for k in range(head + 1, len(before)) if before[k] == "  }")
    assert browser.js(shown) == [*before[:head], before[head].replace("▾", "▸"), *before[end:]]
    browser.move(f'#source [data-line="{line_of("total = total + np.sum")}"]', click=True)  # what is linked to is shown
    assert browser.js(shown) == before
    browser.key("c")
    assert len(browser.js(shown)) <= len(before) - (end - head - 1)
    browser.key("c")
    assert browser.js(shown) == before
    assert browser.errors == []


@needs_browser
def test_values_on_click(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.js("program('forward')")
    browser.js("[...document.querySelectorAll('#program .vl')].find(e => e.textContent === '%h').id = 'probe'")
    browser.move("#probe", click=True)
    shown = browser.js("document.querySelector('#value').innerText")
    assert "float32[128, 64]" in shown
    assert "min 1" in shown


@needs_browser
def test_keys_tabs_and_passes(browser: Browser, page: Path) -> None:
    browser.open(page)
    for key, tab in zip("123456", ("forward", "backward", "optimized", "traced", "passes", "python")):
        browser.key(key)
        assert browser.js("document.querySelector('#stages [aria-selected=true]').dataset.tab") == tab
        assert browser.js("document.querySelector('#program').children.length") > 5
    browser.key("]")
    assert "2." in browser.js("document.querySelector('#pass').textContent")
    changed = 0
    for _ in range(12):
        browser.key("]")
        changed += browser.js("document.querySelectorAll('#program .add, #program .del').length")
    assert changed > 0
    browser.key("l")
    assert "define" in browser.js("document.querySelector('#native').textContent")
    browser.key("r")
    assert browser.js("document.querySelectorAll('#cost circle').length") > 0
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    assert browser.js("document.querySelectorAll('#source .pin').length") == 1
    browser.key("?")
    assert browser.js("document.querySelector('#help').hidden") is False
    assert browser.errors == []


@needs_browser
def test_dark_and_light(browser: Browser, page: Path) -> None:
    colours = []
    for name in ("dark", "light"):
        browser.theme(name)
        browser.open(page)
        assert browser.js("document.documentElement.dataset.theme") == name
        colours.append(browser.js("getComputedStyle(document.querySelector('section')).backgroundColor"))
    assert colours[0] != colours[1]
    browser.key("t")
    assert browser.js("document.documentElement.dataset.theme") == "dark"
    assert browser.js("getComputedStyle(document.querySelector('section')).backgroundColor") == colours[0]


@needs_browser
def test_hostile_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    bad = "</script><script>window.owned=1</script><img src=x onerror='owned=1'>\"'&<!--\u2028"
    variable = aj.Variable(np.ones(3), name=bad)

    @aj.function(name=bad)
    def f(x: Any) -> Any:
        y = np.sum(x * variable)  # </script><script>window.owned=2</script> <b>"&amp;'
        assert y < 1e9, "</script><script>window.owned=3</script>"
        return y

    path = f.explore(np.ones(3), path=tmp_path / "hostile.html", open=False)
    assert path.read_text(encoding="utf-8").count("</script") == 1
    browser.open(path)
    assert browser.js("typeof window.owned") == "undefined"
    for tab in ("forward", "optimized", "traced", "python"):
        browser.js(f"program({tab!r})")
    assert browser.js("typeof window.owned + document.querySelectorAll('img').length") == "undefined0"
    assert bad.replace("\u2028", "") in browser.js("document.querySelector('#name').textContent").replace("\u2028", "")
    assert browser.errors == []


@needs_browser
def test_two_thousand_ops_are_usable(browser: Browser, tmp_path: Path) -> None:
    @aj.function
    def long(x: Any) -> Any:
        return reduce(lambda x, k: np.sin(x) * (1.0 + k), list(range(1000)), x)

    path = long.explore(np.ones(4), path=tmp_path / "long.html", open=False)
    browser.send("Performance.enable", timeDomain="threadTicks")  # processor time: other work on the machine does not count
    before = browser.metric("TaskDuration")
    browser.open(path)
    browser.js("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    assert browser.metric("TaskDuration") - before < 1.0  # for everything that is shown at first; the first paint is earlier
    browser.send("Performance.disable")
    assert browser.js("performance.getEntriesByName('first-contentful-paint').length") == 1
    assert browser.js("D.passes[0].ops") >= 2000
    browser.js("program('traced')")
    assert browser.js("document.querySelector('#program').children.length") > 2000
    browser.js("document.querySelector('#filter').value = 'sin'; document.querySelector('#filter').oninput()")
    assert browser.js("document.querySelectorAll('#program .off').length") >= 1000
    assert browser.errors == []


@needs_browser
def test_notebooks_run_the_page(browser: Browser, tmp_path: Path) -> None:
    outer = tmp_path / "notebook.html"
    frame = step.inspect(X, Y)._repr_html_()
    outer.write_text(f"<!doctype html><html data-ready=yes><body>{frame}</body></html>", encoding="utf-8")
    browser.open(outer)
    assert (
        browser.js_in_frame(
            "new Promise(done => { const look = () => typeof D == 'object' && D ? done(D.name) : setTimeout(look, 20); look() })"
        )
        == "step"
    )
    assert browser.js_in_frame("document.querySelectorAll('#source [data-keys]').length") > 3
    assert browser.errors == []


def test_a_page_of_a_convolutional_network_is_small(tmp_path: Path) -> None:
    """LeNet, whose native code is long: all of it is in the page."""
    layers = [nn.Conv2D(6, 5, padding="same", activation="relu"), nn.MaxPool2D(2), nn.Conv2D(16, 5, activation="relu"), nn.MaxPool2D(2)]
    layers += [nn.Flatten(), nn.Dense(120, activation="relu"), nn.Dense(84, activation="relu"), nn.Dense(10)]
    model = nn.Sequential(layers)
    images, labels = np.random.default_rng(0).normal(size=(64, 28, 28, 1)).astype("f4"), np.arange(64) % 10
    model(images)

    @aj.function
    def train(x: Any, y: Any) -> Any:
        with aj.GradientTape() as tape:
            logits = model(x)
            loss = np.mean(aj.logsumexp(logits, axis=1) - logits[np.arange(64), y])
        for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    path = train.explore(images, labels, path=tmp_path / "lenet.html", open=False)
    assert path.stat().st_size < 400_000
    kernels = data_of(path)["kernels"]
    assert all("more characters" not in kernel["llvm"] + kernel["asm"] for kernel in kernels)
    assert sum(len(kernel["llvm"]) for kernel in kernels) > 300_000


# ---- the examples


def linked(example: Path) -> set[int]:
    """Lines of an example that have an op in the traced program of one of its functions."""
    stmts = (s for concrete, _ in captured(example).functions for top in concrete.program.func.stmts for s in walk(top))
    return {s.location.line for s in stmts if s.location is not None and s.location.file == str(example)}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_line_that_computes_has_ops(example: Path) -> None:
    computing = captured(example).lines
    assert computing
    assert computing == linked(example)


@needs_browser
@pytest.mark.parametrize("example", SHOWN, ids=lambda path: path.stem)
def test_pages_of_examples(browser: Browser, example: Path, tmp_path: Path) -> None:
    found = sorted(captured(example).functions, key=lambda each: -len(each[0].program.func.stmts))
    for number, (concrete, arrays) in enumerate(found if SHOWN is EXAMPLES else found[:1]):
        path = tmp_path / f"{number}.html"
        path.write_text(explore(concrete, arrays, None), encoding="utf-8")
        browser.open(path)
        own = {s.location.line for top in concrete.program.func.stmts for s in walk(top) if s.location and s.location.file == str(example)}
        file = browser.js(f"D.files.findIndex(f => f.name === {example.name!r})")
        if own:
            browser.js(f"source({file}); program('traced')")
        lines = browser.js("[...document.querySelectorAll('#source [data-keys]')].map(e => +e.dataset.line)")
        assert own <= set(lines)
        assert browser.js(f"{json.dumps(sorted(own))}.every(n => panes.get('program').has({file} + ':' + n))")
        shown = "(kernel(i), [...document.querySelector('#native').children].map(e => e.textContent).join('\\n'))"
        assert browser.js(rf"D.kernels.every((k, i) => /^\s*(ret|jmp)/m.test({shown}))"), "a kernel without assembly"
        assert browser.errors == []


def test_the_command(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(
        "import numpy as np\nimport adjit as aj\n\n@aj.function\ndef small(x):\n    return x + 1\n\n"
        "@aj.function\ndef large(x):\n    return np.sum(np.sin(x) * x)\n\nsmall(np.ones(3))\nlarge(np.ones(3))\nprint('ran')\n"
    )
    run = [sys.executable, "-m", "adjit.explore"]
    out = tmp_path / "page.html"
    done = subprocess.run([*run, "--no-open", "--output", str(out), f"{script}:small"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ran\n@small:" in done.stdout
    assert data_of(out)["name"] == "small"
    missing = subprocess.run([*run, "--no-open", f"{script}:other"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert missing.returncode == 1
    assert "no compiled function 'other' was called; these were: small, large" in missing.stderr
