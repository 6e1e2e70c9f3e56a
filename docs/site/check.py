#!/usr/bin/env python3
"""Visits every page of the built site in headless Chromium and reports what a reader would trip over.

  - a link, a picture or an anchor that leads nowhere; a picture that does not load or has no alternative text
  - an error of JavaScript, or a request to another host
  - a page wider than the screen at 360 and 1280 pixels: wide tables and code must scroll in a box of their own
  - text with too little contrast, in the light and in the dark colours
  - a search that misses what it must find
  - a way from the front page that takes more than two clicks
  - a diagram of the course that does not show the states of its data

With --self-test it plants one of each kind into a copy of the site and fails unless each is found.
"""

import argparse
import asyncio
import functools
import http.server
import json
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

from playwright.async_api import BrowserContext, Page, async_playwright

TABS = 4
NARROW, WIDE = 360, 1280
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# What one looks for, and a page that must be among the first results.
FIRST = 5
SEARCHES = {
    "Gemm::launch": "reference/Gemm.html#",
    "race": "emulator.html",
    "TMEM": "reference/Tmem.html",
    "bank conflict": "glossary.html",
}
# What a newcomer wants: the links to click, on the front page and on the next one, and words that must be there.
WAYS = {
    "how to install": (["cmake.html"], "find_package(tessera"),
    "the contract of Gemm::launch": (
        ["reference/host_api.html", "reference/Gemm.html"], "This is the contract of every launch"),
    "what runs on an RTX card": (["support.html"], "RTX"),
    "how fast against cuBLASLt and where slower": (["performance.html"], "cuBLASLt"),
    "how to find a race without a GPU": (["emulator.html"], "race"),
    "how to learn Blackwell": (["course/index.html", "course/01-tiles.html"], "A planted bug"),
    "where to change a tile": (["architecture.html"], "tile"),
}

# What a page says about itself: links, pictures, ids, what is wider than the screen.
INSPECT = """() => {
    const width = document.documentElement.clientWidth;
    const clipped = (element) => {
        for (let box = element.parentElement; box && box !== document.body; box = box.parentElement) {
            const style = getComputedStyle(box);
            if (style.position === 'fixed') return true;
            if (style.overflowX !== 'visible' && box.getBoundingClientRect().right <= width + 1 &&
                !box.matches('.content, .main, .page')) return true;
        }
        return false;
    };
    const wide = [];
    for (const element of document.querySelectorAll('article *')) {
        const box = element.getBoundingClientRect();
        const floats = getComputedStyle(element).position === 'absolute';
        if (box.width > 0 && box.right > width + 1 && !floats && !clipped(element)) {
            const words = (element.textContent || '').replace(/\\s+/g, ' ').trim();
            wide.push(element.tagName.toLowerCase() + ' ' + words.slice(0, 40));
        }
    }
    return {
        links: [...document.querySelectorAll('a[href]')].map(a => a.href),
        ids: [...document.querySelectorAll('[id]')].map(e => e.id),
        pictures: [...document.querySelectorAll('img')].map(i => ({
            source: i.src, alt: (i.getAttribute('alt') || '').trim(), loaded: i.complete && i.naturalWidth > 0})),
        scrolls: document.documentElement.scrollWidth > width + 1,
        wide: wide.slice(0, 3),
    };
}"""

# Text whose contrast with what is behind it is less than WCAG's 4.5 (3 for large text).
CONTRAST = """() => {
    const parse = (text) => {
        const parts = text.match(/[\\d.]+/g).map(Number);
        return parts.length < 4 ? [...parts.slice(0, 3), 1] : parts;
    };
    const linear = (v) => v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
    const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
    const behind = (element) => {
        const layers = [];
        for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
        return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
    };
    const bad = {};
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement, words = walker.currentNode.data.trim();
        const skipped = element.closest('script, style, noscript, svg, .headerlink, .linenos');
        if (!words || skipped || !element.checkVisibility()) continue;
        const style = getComputedStyle(element), below = behind(element), text = over(parse(style.color), below);
        const [a, b] = [light(text), light(below)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
        const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
        if (ratio < (large ? 3 : 4.5) - 0.01) {
            const kind = `${style.color} on rgb(${below.slice(0, 3).map(Math.round)})`;
            bad[kind] = bad[kind] || `"${words.slice(0, 30)}" has contrast ${ratio.toFixed(2)}: ${kind}`;
        }
    }
    return Object.values(bad);
}"""


# What is wrong with the diagrams of a page: each step must show its text, and the state that the data gives for every cell.
STEP_THROUGH = """() => {
    const findings = [];
    for (const place of document.querySelectorAll('div.steps')) {
        const data = JSON.parse(place.querySelector('script').textContent), state = {}, seen = new Set();
        const cells = Object.fromEntries([...place.querySelectorAll('.steps-cell')].map(e => [e.dataset.cell, e]));
        const next = place.querySelector('button[aria-label="next step"]');
        if (!next) { findings.push(`the diagram ${place.id} has no buttons`); continue; }
        data.steps.forEach((step, number) => {
            Object.assign(state, step.cells);
            if (number > 0) next.click();
            if (place.querySelector('.steps-text').textContent !== step.text)
                findings.push(`step ${number} of the diagram ${place.id} does not show its text`);
            for (const [id, [kind, text]] of Object.entries(state))
                if (!cells[id] || cells[id].textContent !== text || !cells[id].classList.contains(`steps-${kind}`))
                    findings.push(`step ${number} of the diagram ${place.id} shows the wrong state of ${id}`);
            seen.add(JSON.stringify(state));
        });
        if (seen.size < 5) findings.push(`the diagram ${place.id} has only ${seen.size} states`);
        place.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true}));
        if (place.dataset.step !== String(data.steps.length - 2)) findings.push(`the diagram ${place.id} has no way back by a key`);
        for (const [id, others] of Object.entries(data.links || {})) {
            cells[id].dispatchEvent(new PointerEvent('pointerenter'));
            const marked = [...place.querySelectorAll('.steps-linked')].length;
            if (marked !== others.length + 1) findings.push(`the diagram ${place.id} marks ${marked} cells under the cursor at ${id}`);
            cells[id].dispatchEvent(new PointerEvent('pointerleave'));
        }
    }
    return findings.slice(0, 5);
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # Chromium cancels the requests of a page that it leaves


class Check:
    def __init__(self, folder: Path, address: str):
        self.folder, self.address = folder, address
        self.pages = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html")
                            if "_static" not in path.parts)
        self.findings: list[str] = []
        self.ids: dict[str, set[str]] = {}
        self.links: dict[str, set[str]] = {}

    def find(self, where: str, what: str) -> None:
        self.findings.append(f"{where}: {what}")

    async def new_page(self, context: BrowserContext, where: list[str]) -> Page:
        """A tab; `where` holds the name of the page that it shows."""
        page = await context.new_page()
        page.on("pageerror", lambda error: self.find(where[0], f"JavaScript: {error}"))
        page.on("request", lambda request: None if request.url.startswith((self.address, "data:")) else
                self.find(where[0], f"asks another host: {request.url}"))
        page.on("response", lambda response: self.find(where[0], f"{response.url} is missing ({response.status})")
                if response.status >= 400 else None)
        return page

    async def visit(self, context: BrowserContext, queue: asyncio.Queue) -> None:
        where = [""]
        page = await self.new_page(context, where)
        while not queue.empty():
            name = queue.get_nowait()
            where[0] = name
            await page.set_viewport_size({"width": NARROW, "height": 800})
            await page.goto(f"{self.address}/{name}", wait_until="load")
            self.judge_width(name, NARROW, await page.evaluate(INSPECT))
            await page.set_viewport_size({"width": WIDE, "height": 800})
            facts = await page.evaluate(INSPECT)
            self.judge_width(name, WIDE, facts)
            self.ids[name] = set(facts["ids"])
            self.links[name] = set(facts["links"])
            for picture in facts["pictures"]:
                if not picture["loaded"]:
                    self.find(name, f"picture {picture['source']} does not load")
                if not picture["alt"]:
                    self.find(name, f"picture {picture['source']} has no alternative text")
        await page.close()

    def judge_width(self, name: str, width: int, facts: dict) -> None:
        if facts["scrolls"] or facts["wide"]:
            self.find(name, f"is wider than {width} pixels: {'; '.join(facts['wide']) or 'the page scrolls sideways'}")

    def judge_links(self) -> None:
        for name, links in self.links.items():
            for link in sorted(links):
                address, anchor = urldefrag(link)
                if not address.startswith(self.address):
                    continue  # the web outside is not ours to check
                target = unquote(urlparse(address).path).lstrip("/") or "index.html"
                if not (self.folder / target).is_file():
                    self.find(name, f"links to {target}, which does not exist")
                elif anchor and target in self.ids and unquote(anchor) not in self.ids[target]:
                    self.find(name, f"links to {target}#{anchor}, which has no such place")

    async def contrast(self, browser) -> None:
        some = ["index.html", "guide.html", "course/03-ring.html", "support.html", "emulator.html", "changelog.html", "reference/Gemm.html",
                "reference/Barrier.html", "source/examples/quickstart/main.cpp.html"]
        for scheme in ("light", "dark"):
            context = await browser.new_context(color_scheme=scheme, viewport={"width": WIDE, "height": 800})
            page = await self.new_page(context, where := [""])
            for name in (name for name in some if name in self.pages):
                where[0] = name
                await page.goto(f"{self.address}/{name}", wait_until="load")
                for finding in await page.evaluate(CONTRAST):
                    self.find(name, f"{scheme} colours: {finding}")
            background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            if (background == "rgb(255, 255, 255)") != (scheme == "light"):
                self.find("index.html", f"{scheme} colours: the background is {background}")
            await context.close()

    async def searches(self, context: BrowserContext) -> None:
        page = await self.new_page(context, where := ["search.html"])
        for words, wanted in SEARCHES.items():
            where[0] = f"search for {words}"
            await page.goto(f"{self.address}/index.html")
            box = page.locator("input[name=q]:visible").first
            await box.fill(words)
            await box.press("Enter")
            try:
                await page.wait_for_function("document.querySelector('#search-results p.search-summary')"
                                             "?.textContent.match(/found|did not match/)", timeout=15000)
            except Exception:  # says so below
                pass
            found = await page.evaluate("[...document.querySelectorAll('#search-results li a')].map(a => a.href)")
            if not any(wanted in address for address in found[:FIRST]):
                self.find(where[0], f"{wanted} is not among the first {FIRST} of {len(found)} results")
        await page.close()

    async def diagrams(self, context: BrowserContext) -> None:
        """Steps through every diagram of the course, forwards by the button and back by a key."""
        page = await self.new_page(context, where := [""])
        for name in (name for name in self.pages if name.startswith("course/")):
            where[0] = name
            await page.goto(f"{self.address}/{name}")
            if await page.locator("div.steps").count() == 0 and "index" not in name and "capstone" not in name:
                self.find(name, "has no diagram")
            self.findings += [f"{name}: {finding}" for finding in await page.evaluate(STEP_THROUGH)]
        await page.close()

    async def ways(self, context: BrowserContext) -> None:
        page = await self.new_page(context, where := ["index.html"])
        await page.set_viewport_size({"width": WIDE, "height": 800})
        for wish, (clicks, words) in WAYS.items():
            where[0] = wish
            await page.goto(f"{self.address}/index.html")
            for target in clicks:
                address = f"{self.address}/{target}"
                links = await page.evaluate(
                    "[...document.querySelectorAll('a[href]')].map(a => a.checkVisibility() ? a.href : '')")
                place = next((i for i, link in enumerate(links) if urldefrag(link)[0] == address), None)
                if place is None:
                    self.find(wish, f"no link to {target} can be seen on {page.url.removeprefix(self.address)}")
                    break
                await page.locator("a[href]").nth(place).click()
                await page.wait_for_url(lambda url: urldefrag(url)[0] == address)
            else:
                if words not in await page.inner_text("body"):
                    self.find(wish, f"{clicks[-1]} does not have the words '{words}'")
        await page.close()

    async def run(self, parts: tuple[str, ...]) -> None:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            context = await browser.new_context(color_scheme="light")
            if "pages" in parts:
                queue: asyncio.Queue = asyncio.Queue()
                for name in self.pages:
                    queue.put_nowait(name)
                await asyncio.gather(*(self.visit(context, queue) for _ in range(TABS)))
                self.judge_links()
            if "contrast" in parts:
                await self.contrast(browser)
            if "searches" in parts:
                await self.searches(context)
            if "ways" in parts:
                await self.ways(context)
            if "diagrams" in parts:
                await self.diagrams(context)
            await browser.close()


def check(folder: Path, parts: tuple[str, ...] = ("pages", "contrast", "searches", "ways", "diagrams")) -> list[str]:
    handler = functools.partial(Quiet, directory=str(folder))
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        job = Check(folder, f"http://127.0.0.1:{server.server_port}")
        asyncio.run(job.run(parts))
        server.shutdown()
    return list(dict.fromkeys(job.findings))


# What --self-test plants: the page, what it is added to there, and words of the finding that must come.
WIDE_TABLE = "<table><tr>" + "<td>a_cell_that_does_not_break</td>" * 20 + "</tr></table>"
PLANTS = {
    "a broken link": ('<p><a href="no-such-page.html">x</a></p>', "links to no-such-page.html"),
    "a broken anchor": ('<p><a href="#no-such-place">x</a></p>', "#no-such-place, which has no such place"),
    "an overflowing table": (WIDE_TABLE, "is wider than 360 pixels"),
    "a missing picture": ('<p><img src="no-such-picture.svg" alt="x"></p>', "no-such-picture.svg does not load"),
    "a picture without text": ('<p><img src="_static/logo.svg"></p>', "has no alternative text"),
    "a diagram without buttons": ('<div class="steps" id="x"><script type="application/json">{"steps":[]}</script></div>',
                                  "the diagram x has no buttons"),
    "an error of JavaScript": ("<script>undefined_function();</script>", "JavaScript: "),
    "a request to another host": ('<script src="http://127.0.0.2:9/x.js"></script>', "asks another host"),
    "grey on grey": ('<p style="color:#888;background:#999">hard to read</p>', "has contrast"),
}

# An index of the search in which nothing is found.
NOTHING = "Search.setIndex(" + json.dumps({
    "docnames": [], "filenames": [], "titles": [], **{name: {} for name in (
        "alltitles", "envversion", "indexentries", "objects", "objnames", "objtypes", "terms", "titleterms")}}) + ")"


def self_test(folder: Path) -> list[str]:
    """What of the plants is not found, or found where nothing was planted."""
    missed = []
    with tempfile.TemporaryDirectory() as temporary:
        site = Path(temporary)
        for name in ("_static", "_images"):
            shutil.copytree(folder / name, site / name)
        shutil.copy(folder / "search.html", site)
        (site / "searchindex.js").write_text(NOTHING)
        clean = ("<!doctype html><html lang=en><title>x</title><body style='color:#000;background:#fff'>"
                 "<article><p>x</p>{}</article>")
        frame = (folder / "index.html").read_text()
        before, _, rest = frame.partition("</article>")
        (site / "course").mkdir()
        places = {kind: f"{'course/' if 'diagram' in kind else ''}plant{number}.html" for number, kind in enumerate(PLANTS)}
        for kind, (plant, _) in PLANTS.items():
            (site / places[kind]).write_text(clean.format(plant))
        (site / "clean.html").write_text(clean.format(""))
        # The last kind is looked for on the pages that readers begin with.
        (site / "index.html").write_text(before + PLANTS["grey on grey"][0] + "</article>" + rest)
        (site / "reference").mkdir()
        (site / "reference/host_api.html").write_text(clean.format(""))
        findings = check(site)
        for kind, (_, words) in PLANTS.items():
            page = "index.html" if kind == "grey on grey" else places[kind]
            if not any(finding.startswith(page) and words in finding for finding in findings):
                missed.append(f"{kind} was not found")
        missed += [f"found where nothing was planted: {finding}"
                   for finding in findings if finding.startswith("clean.html")]
        for words, wanted in SEARCHES.items():
            if not any(finding.startswith(f"search for {words}") for finding in findings):
                missed.append(f"a search for {words} without {wanted} was not found")
        for wish in WAYS:
            if not any(finding.startswith(wish) for finding in findings):
                missed.append(f"that there is no way to '{wish}' was not found")
        if not any("no link to reference/Gemm.html can be seen" in finding for finding in findings):
            missed.append("a missing second click was not found")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true", help="plant what must be found into a copy")
    parser.add_argument("site", type=Path, help="the folder with index.html")
    arguments = parser.parse_args()
    if CHROMIUM is None:
        print("check.py: no chromium is installed", file=sys.stderr)
        return 1
    start = time.monotonic()
    findings = (self_test if arguments.self_test else check)(arguments.site.resolve())
    for finding in findings:
        print(f"check.py: {finding}", file=sys.stderr)
    what = "the check's own test" if arguments.self_test else f"{sum(1 for _ in arguments.site.rglob('*.html'))} pages"
    print(f"{what}: {len(findings)} findings in {time.monotonic() - start:.0f} s")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
