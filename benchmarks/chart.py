"""Draw the first table of results in README.md as bars: adjit's time divided by that of the fastest other framework.

    python benchmarks/chart.py        # writes docs/images/benchmarks.svg

A test compares the picture with the table. It adapts to dark pages, and embeds no fonts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE, PICTURE = ROOT / "benchmarks" / "README.md", ROOT / "docs" / "images" / "benchmarks.svg"
ROW = re.compile(r"\| (?P<name>[^|]+) \| [^|]+ \| (?P<peer>[A-Za-z][^|]*?) [\d.]+ [mµ]?s[^|]* \| (?P<ratio>[\d.]+) \|")

LEFT, WIDTH, RIGHT, STEP, TOP = 190, 420, 190, 26, 34
STYLE = """
  text { font: 13px system-ui, "Segoe UI", Roboto, sans-serif; fill: #22252b }
  .quiet { fill: #777b84 } .bar { fill: #3d5a98 } .rest { fill: #3d5a98; opacity: .12 } .line { stroke: #c25a2a }
  @media (prefers-color-scheme: dark) {
    text { fill: #e8e6e1 } .quiet { fill: #8d919b } .bar, .rest { fill: #8fb0ee } .line { stroke: #e88954 }
  }
"""


def lines() -> list[str]:
    """The rows of the first table below "Results", without its heading."""
    section = TABLE.read_text(encoding="utf-8").partition("\n## Results\n")[2]
    return section.partition("\n| workload ")[2].partition("\n\n")[0].splitlines()[2:]


def rows() -> list[tuple[str, str, float]]:
    """(workload, fastest other framework, ratio) of every row."""
    matches = [ROW.match(line) for line in lines()]
    return [(m["name"].strip(), m["peer"].strip(" ,").replace("`", ""), float(m["ratio"])) for m in matches if m]


def drawn(table: list[tuple[str, str, float]]) -> Iterator[str]:
    """The lines of the picture."""
    height = TOP + STEP * len(table) + 12
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" role="img">'
    yield f"<title>adjit's time divided by that of the fastest other framework</title>\n<style>{STYLE}</style>"
    for x, label in ((0.0, "0"), (0.5, "half the time"), (1.0, "as fast")):
        at = LEFT + WIDTH * x
        yield f'<text class="quiet" x="{at:.0f}" y="18" text-anchor="middle">{label}</text>'
    for k, (name, peer, ratio) in enumerate(table):
        y = TOP + STEP * k
        end = LEFT + WIDTH * min(ratio, 1.15)
        yield f'<text x="{LEFT - 12}" y="{y + 14}" text-anchor="end">{escape(name)}</text>'
        yield f'<rect class="rest" x="{LEFT}" y="{y + 2}" width="{WIDTH}" height="16" rx="3"/>'
        yield f'<rect class="bar" x="{LEFT}" y="{y + 2}" width="{end - LEFT:.1f}" height="16" rx="3"><title>{ratio:.2f}</title></rect>'
        yield f'<text class="quiet" x="{LEFT + WIDTH + 10}" y="{y + 14}">{ratio:.2f} of {escape(peer)}</text>'
    yield f'<path class="line" d="M{LEFT + WIDTH} {TOP - 8}V{height - 8}"/>\n</svg>'


def picture() -> str:
    return "\n".join(drawn(rows())) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"{PICTURE}: {len(rows())} workloads")
