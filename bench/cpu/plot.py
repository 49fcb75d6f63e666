"""Draws the benchmark's figures as an SVG: one panel of bars for each figure. It reads on light and on dark pages."""

from html import escape

import report

PANELS = {"decode0": "Decode, depth 0", "decode2048": "Decode, depth 2048", "prefill512": "Prefill 512", "prefill4096": "Prefill 4096"}
BARS = {
    "ingot_fast": ("ingot, fast", "a"), "ingot_exact": ("ingot, exact", "b"), "llama_q4_0": ("llama.cpp Q4_0", "c"),
    "llama_q4_k": ("llama.cpp Q4_K", "c"), "mlx_lm": ("mlx-lm", "d"),
}

# Colours of the bars and of text, for a light page and for a dark one.
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 } .title { font-weight: 600 } .page { fill: #ffffff }
  .a { fill: #0b6e4f } .b { fill: #3d9970 } .c { fill: #5b7fb5 } .d { fill: #8a8f98 } .limit { stroke: #b3261e; stroke-dasharray: 4 3 } .note { fill: #b3261e }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .page { fill: #0d1117 }
    .a { fill: #34c38f } .b { fill: #23855f } .c { fill: #6f94d2 } .d { fill: #9aa1ab } .limit { stroke: #ff8a80 } .note { fill: #ff8a80 }
  }
"""

WIDTH, COLUMN, LABEL, VALUE = 940, 470, 128, 62
BAR, STEP, TOP = 18, 25, 34


def svg(result, shape):
    figures = result[shape]
    panels, y, row = [], 10, 0
    for i, (key, title) in enumerate(PANELS.items()):
        bars = [(label(who, key), kind, figures[key][who]) for who, (_, kind) in BARS.items() if figures[key][who] is not None]
        limit = report.decode_limit(result, shape) if key == "decode0" else None
        panels.append(panel(title, bars, limit, COLUMN * (i % 2) + 12, y))
        row = max(row, TOP + STEP * len(bars) + 30)
        if i % 2:
            y, row = y + row, 0
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img">',
        f"<title>Tokens per second on the CPU, shape {escape(shape)}</title>", f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{y}"/>', *panels, "</svg>", "",
    ])


def label(who, key):
    """mlx-lm prefills 8 tokens, whatever the panel."""
    return BARS[who][0] + (" (8 tokens)" if who == "mlx_lm" and key.startswith("prefill") else "")


def panel(title, bars, limit, x, y):
    room = COLUMN - LABEL - VALUE - 24
    scale = room / max([limit or 0, *(value for *_, value in bars)])
    out = [f'<text class="title" x="{x}" y="{y + 18}">{escape(title)}, tokens/s</text>']
    at = y + TOP
    for name, kind, value in bars:
        width = max(1.0, value * scale)
        shown = f"{value:.1f}" if value >= 1 else f"{value:.2f}"
        out.append(f'<text x="{x + LABEL - 8}" y="{at + 14}" text-anchor="end">{escape(name)}</text>')
        out.append(f'<rect class="{kind}" x="{x + LABEL}" y="{at}" width="{width:.1f}" height="{BAR}" rx="2"/>')
        after = x + LABEL + width + 6
        if limit and after < x + LABEL + limit * scale < after + 9 * len(shown):
            after = x + LABEL + limit * scale + 6  # not across the line
        out.append(f'<text x="{after:.1f}" y="{at + 14}">{shown}</text>')
        at += STEP
    if limit:
        line = x + LABEL + limit * scale
        out.append(f'<line class="limit" x1="{line:.1f}" x2="{line:.1f}" y1="{y + TOP - 4}" y2="{at}"/>')
        out.append(f'<text class="note" x="{line:.1f}" y="{at + 14}" text-anchor="end">read bandwidth allows {limit:.1f}</text>')
    return "\n".join(out)
