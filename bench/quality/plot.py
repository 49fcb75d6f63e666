"""Draws the quality benchmark as an SVG: for each model, divergence over size and over decode speed. It reads on light and
on dark pages."""

import math
from html import escape

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 } .title { font-weight: 600; font-size: 13px } .page { fill: #ffffff }
  .grid { stroke: #d0d7de } .ingot { fill: #0b6e4f } .llama { fill: #5b7fb5 } .mlx { fill: #b3701e }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .page { fill: #0d1117 } .grid { stroke: #30363d }
    .ingot { fill: #34c38f } .llama { fill: #6f94d2 } .mlx { fill: #e0a458 }
  }
"""
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 620, 420, 64, 40, 46
KINDS = {"ingot": "ingot", "llama": "llama.cpp", "mlx": "mlx-lm"}
LEAST = 1e-4  # of the axis of divergences


def svg(rows):
    models = list(dict.fromkeys(row["model"] for row in rows))
    axes = [("bpw", "bits per weight"), ("decode_tps", "tokens per second, decode")]
    width, height = WIDTH * len(axes), HEIGHT * max(len(models), 1) + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        "<title>Divergence of quantized models over size and over speed</title>", f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
    ]
    for i, (kind, label) in enumerate(KINDS.items()):
        out.append(f'<circle class="{kind}" cx="{LEFT + 110 * i}" cy="16" r="5"/><text x="{LEFT + 110 * i + 10}" y="20">{label}</text>')
    for i, model in enumerate(models):
        for k, (key, label) in enumerate(axes):
            points = [r for r in rows if r["model"] == model and r.get(key)]
            if points:
                out += panel(points, key, f"{model}: mean KL over {label}", WIDTH * k, HEIGHT * i + 30)
    return "\n".join([*out, "</svg>", ""])


def panel(points, key, title, left, top):
    values = [p[key] for p in points]
    low, high = min(values), max(values)
    margin = (high - low or 1) * 0.06
    low, high = low - margin, high + margin
    logs = [math.log10(max(p["kl"], LEAST)) for p in points]
    bottom, ceiling = math.floor(min(logs)), math.ceil(max(logs))
    ceiling = max(ceiling, bottom + 1)
    wide, tall = WIDTH - LEFT - 20, HEIGHT - TOP - BOTTOM
    x = lambda v: left + LEFT + (v - low) / (high - low) * wide
    y = lambda log: top + TOP + (ceiling - log) / (ceiling - bottom) * tall
    out = [f'<text class="title" x="{left + LEFT}" y="{top + 22}">{escape(title)}</text>']
    for power in range(bottom, ceiling + 1):
        out.append(f'<line class="grid" x1="{left + LEFT}" x2="{left + LEFT + wide}" y1="{y(power):.1f}" y2="{y(power):.1f}"/>')
        out.append(f'<text x="{left + LEFT - 8}" y="{y(power) + 4:.1f}" text-anchor="end">{10 ** power:g}</text>')
    for i in range(5):
        at = low + (high - low) * (i + 0.5) / 5
        out.append(f'<text x="{x(at):.1f}" y="{top + HEIGHT - BOTTOM + 20}" text-anchor="middle">{at:.3g}</text>')
    for p, log in zip(points, logs):
        tip = f"{p['name']}: {p['bytes'] / 1e6:.1f} MB, KL {p['kl']:.4f}"
        out.append(f'<circle class="{p["name"].split()[0]}" cx="{x(p[key]):.1f}" cy="{y(log):.1f}" r="4.5"><title>{escape(tip)}</title></circle>')
    return out
