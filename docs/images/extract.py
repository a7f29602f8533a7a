#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the figures that README shows out of a report of `rudderfish evaluate --report`.

    ./demo && docs/images/extract.py demo-report.html            # writes them beside this script
    docs/images/extract.py demo-report.html -o FOLDER

Each is an SVG file of its own: the report's light colours on a white card, readable wherever a page shows it, also one
with a dark background. CSS variables are put in by value, since many programs that show SVG do not know them.
"""
import argparse
import html
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

# File, and the title of the figure in the report's caption.
FIGURES = {"distribution.svg": "How low they end, and how often", "moves.svg": "What each move brings",
           "learning.svg": "Learning curve", "placement.svg": "Pods on nodes, before and after"}
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif'
MARGIN, HEAD = 26, 48  # Around a figure, and of its caption.


def figures_of(page):
    """{title: (explanation, svg text)} of a report."""
    found = {}
    for block in re.findall(r"<figure.*?</figure>", page, re.S):
        caption = re.search(r"<b>(.*?)</b><span>(.*?)</span>", block, re.S)
        svg = re.search(r"<svg.*</svg>", block, re.S)
        if caption and svg:
            found[caption.group(1)] = (caption.group(2), svg.group(0))
    return found


def rules_of(page):
    """The report's light style as [(selectors, declarations)] without CSS variables, media and what is not for figures."""
    sheet = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
    sheet = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", sheet)
    rules = [([part.strip() for part in selectors.split(",")], body.strip())
             for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", sheet)]
    values = {}  # Of :root.
    given = {}   # variable -> [(class, value)]: what a group of class .s0 hands down.
    for selectors, body in rules:
        for name, value in re.findall(r"(--[\w-]+):\s*([^;]+)", body):
            if selectors == [":root"]:
                values[name] = value.strip()
            else:
                given.setdefault(name, []).extend((selector, value) for selector in selectors)

    def put_in(text):
        return re.sub(r"var\((--[\w-]+)\)", lambda match: put_in(values[match.group(1)]) if match.group(1) in values
                      else match.group(0), text)

    flat = []
    for selectors, body in rules:
        body = put_in(re.sub(r"--[\w-]+:[^;]+;?", "", body)).strip()
        selectors = [re.sub(r"^svg ", "", selector) for selector in selectors if re.match(r"(svg )?[.\w]", selector)]
        open_variable = re.search(r"var\((--[\w-]+)\)", body)
        if not body or not selectors:
            continue
        if not open_variable:
            flat.append((selectors, body))
            continue
        for group, value in given[open_variable.group(1)]:
            flat.append(([f"{group} {selector}" for selector in selectors] + [f"{selector}{group}" for selector in selectors],
                         body.replace(open_variable.group(0), put_in(value))))
    return flat


def style_for(svg, rules):
    """Only the rules whose classes all occur in the figure."""
    used = {name for names in re.findall(r'class="([^"]*)"', svg) for name in names.split()}
    lines = []
    for selectors, body in rules:
        kept = [selector for selector in selectors
                if (classes := re.findall(r"\.([\w-]+)", selector)) and set(classes) <= used or selector == "text"]
        if kept:
            lines.append(f"{', '.join(kept)} {{ {body} }}")
    return "\n".join(lines)


def standalone(title, explanation, svg, rules):
    width, height = (float(number) for number in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())
    whole_width, whole_height = width + 2 * MARGIN, height + HEAD + 2 * MARGIN
    label = re.search(r'aria-label="([^"]*)"', svg).group(1)
    content = re.sub(r"^<svg[^>]*>|</svg>$", "", svg).strip()
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole_width:g} {whole_height:g}" \
width="{whole_width:g}" height="{whole_height:g}" role="img" aria-label="{label}" font-family='{FONT}'>
<style>
.card {{ fill: #ffffff; stroke: #e3e1dc; }}
.caption {{ fill: #17202a; font-size: 16px; font-weight: 650; }}
.explanation {{ fill: #5a6572; font-size: 13px; }}
{style_for(svg, rules)}
</style>
<rect class="card" x=".5" y=".5" width="{whole_width - 1:g}" height="{whole_height - 1:g}" rx="14"/>
<text class="caption" x="{MARGIN}" y="{MARGIN + 12}">{title}</text>
<text class="explanation" x="{MARGIN}" y="{MARGIN + 32}">{explanation}</text>
<g transform="translate({MARGIN} {MARGIN + HEAD})">
{content}
</g>
</svg>
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()
    page = arguments.report.read_text(encoding="utf-8")
    figures, rules = figures_of(page), rules_of(page)
    for name, title in FIGURES.items():
        if html.escape(title) not in figures:
            sys.exit(f"{arguments.report}: has no figure \"{title}\"; evaluate a run folder, as ./demo does")
        text = standalone(title, *figures[html.escape(title)], rules)
        ElementTree.fromstring(text)  # Well-formed, or an exception that says where it is not.
        (arguments.output / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
