"""The benchmark's table as text."""

import statistics

QUIET = 0.05  # of the machine, for other programs


def value(v):
    """What one measurement gave, in a few characters."""
    if not isinstance(v, dict):
        return f"{v:10.2f}"
    if "all" in v:
        return f"{v['all'] / v['last']:10.2f}"
    if "short" in v:
        return f"{v['long']['token'] / v['short']['token']:10.2f}"
    if "draft" in v:
        return f"{v['draft'] / v['one']:10.2f} {v['streams'] / v['one']:.2f}"
    if "64" in v:
        return f"{v['1']:10.1f} {v['8']:.1f} {v['64']:.1f} GB/s"
    return f"{overhead(v):10.1%} of {v['wall'] * 1e3:.2f} ms"


def decode_limit(result, shape):
    """What the read bandwidth allows, in tokens per second: each token reads all weights that it needs."""
    own = {**result, **result[shape]}
    return own["read_gbps"] * 1e9 / own["bytes_per_token"]


def ratio(row, who, over=None):
    """How many times as fast as llama.cpp with its first format, or as another, None where one of the two is not measured."""
    over = over or next(name for name in row if name.startswith("llama_"))
    return row[who] / row[over] if row[who] is not None and row[over] is not None else None


def over_one(rounds, key):
    """The time of eight rows over that of one."""
    return statistics.median(r[key] / r["one"] for r in rounds)


def skipping(detail):
    """How many times as fast a prefill is for skipping layers where nobody wants scores."""
    return statistics.median(r["all"] / r["last"] for r in detail["skipped"])


def overhead(profile):
    """The share of a token's time that is outside of kernels."""
    return 1 - profile["kernels"] / profile["wall"]


def cell(row, who):
    if row[who] is None:
        return "-"
    times = ratio(row, who)
    return f"{row[who]:.4g}" + ("" if times is None else f" ({times:.3g})")


def text(everything):
    result = everything["result"]
    lines = []
    for shape, detail in everything["shapes"].items():
        figures = result[shape]
        names = list(figures[next(iter(detail["runs"]))])
        lines += ["", f"{shape}, tokens per second, medians of {detail.get('rounds', everything['rounds'])} rounds; in brackets times llama.cpp, its first format:"]
        lines.append(f"{'':12}" + "".join(f"{n:>20}" for n in names))
        for figure in detail["runs"]:
            row = figures[figure]
            lines.append(f"{figure:12}" + "".join(f"{cell(row, n):>20}" for n in names))
        if figures.get("agreement"):
            lines.append(f"scores of a small model, ingot's and llama.cpp's: cosine {figures['agreement']:.5f}")
        if detail.get("skipped"):
            lines.append(f"prefill 512 in one piece, exact, over one whose rows all pass all layers: {skipping(detail):.2f} times as fast")
        if "decode0" in figures:
            bound = decode_limit(result, shape)
            shares = ", ".join(f"{n} {figures['decode0'][n] / bound:.0%}" for n in names if figures["decode0"][n] and figures["decode0"][n] > bound / 100)
            lines.append(f"decode0 of the {bound:.1f} tokens per second that the read bandwidth allows: {shares}")
        for math, rounds in detail["rows"].items():
            draft, streams = (over_one(rounds, key) for key in ("draft", "streams"))
            lines.append(f"8 rows over 1, {math}: {draft:.2f} as a draft of 7 in one sequence (the figure), {streams:.2f} as 8 streams")
        for math, p in detail["profile"].items():
            lines.append(
                f"a token, {math}: {p['wall'] * 1e3:.2f} ms, outside of kernels {overhead(p):.1%} ({(p['wall'] - p['kernels']) * 1e3:.2f} ms); "
                f"in a loop without overlap: graph {p['build'] * 1e3:.2f} ms, evaluation {p['wait'] * 1e3:.2f} ms, freeing {p['free'] * 1e3:.2f} ms"
            )
        if g := detail.get("growth"):
            lines.append("; ".join(
                f"at {d['depth']} tokens: state {d['fixed'] / 1e6:.1f} MB, keys and values {d['positions'] / 1e6:.1f} MB, "
                f"a token {d['token'] * 1e3:.2f} ms, of which attention {d['attention'] * 1e3:.2f} ms" for d in (g["short"], g["long"])))
        if detail["mlx_lm"] and figures["decode0"]["mlx_lm"]:
            lines.append(f"decode0 exact over mlx-lm: {figures['decode0']['ingot_exact'] / figures['decode0']['mlx_lm']:.0f} times")
    lines.append("")
    lines.append(f"limits: read {result['read_gbps']} GB/s, FMA {result['fma_gflops']} GFLOP/s, int16 {result['i16_gops']} and int8 {result['i8_gops']} GOP/s")
    for math, g in everything["gathered"].items():
        shares = ", ".join(f"{n} experts {v:.1f} GB/s ({v / result['read_gbps']:.0%})" for n, v in g.items())
        lines.append(f"gathered, {math}, rows of an expert each: {shares}")
    others = everything["others"]
    lines.append(f"{everything['minutes']} minutes; other programs took {others['median']:.0%} of the machine in the median, {others['most']:.0%} at most")
    if others["median"] > QUIET:
        lines.append("The machine was not quiet: these figures are not worth quoting.")
    return "\n".join(lines)
