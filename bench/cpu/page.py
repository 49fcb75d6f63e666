"""Writes the last run of the benchmark (bench/results/cpu-runs.json) into docs/performance.md and its plot beside it.

The page's own text stays; what lies between a line "<!-- bench-cpu NAME -->" and "<!-- end -->" is replaced.
"""

import json
import os
import re
import sys
import textwrap

import plot
import report

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = os.path.join(HERE, "..", "results", "cpu-runs.json")
PAGE = os.path.join(HERE, "..", "..", "docs", "performance.md")
PLOT = "performance-cpu.svg"
SHAPE = "dense"  # of the plot

NAMES = {
    "ingot_exact": "ingot, exact", "ingot_fast": "ingot, fast", "llama_q4_0": "llama.cpp Q4_0", "llama_q4_k": "llama.cpp Q4_K",
    "llama_mxfp4": "llama.cpp MXFP4", "mlx_lm": "mlx-lm",
}
FIGURES = {"decode0": "decode, depth 0", "decode2048": "decode, depth 2048", "prefill512": "prefill 512", "prefill4096": "prefill 4096"}


def table(head, rows):
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(c) for c in line) + " |" for line in lines)


def paragraph(text):
    """A text in the docs' line length."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def number(value):
    return "-" if value is None else f"{value:.3g}" if value < 1 else f"{value:.1f}"


def machine(run):
    m = run["machine"]
    return paragraph(" ".join([
        f"{run['date']}, {m['processor']} ({m['family']}), {m['cores']} cores{' of a virtual machine' if m['virtual'] else ''}, "
        f"{m['memory_gib']} GiB, {m['system']}; {run['threads']} threads, medians of {run['rounds']} interleaved rounds.",
        f"Load by other programs: {run['others']['median']:.0%} in the median, {run['others']['most']:.0%} at most.",
        f"{versions(run)}.",
    ]))


def first(run):
    """The shape that the page's general parts are about."""
    return run["shapes"].get(SHAPE) or next(iter(run["shapes"].values()))


def versions(run):
    detail = first(run)
    ingot = detail["info"]["ingot"]
    names = [f"MLX {ingot['mlx']} ({ingot['isa']})"]
    if llama := next(info for who, info in detail["info"].items() if who.startswith("llama_")):
        names.append(f"llama-cpp-python {llama['version']}")
    if detail["mlx_lm"]:
        names.append(f"mlx-lm {detail['mlx_lm']['version']}")
    return ", ".join(names)


def speed(run):
    result, parts = run["result"], []
    for shape, detail in run["shapes"].items():
        figures = result[shape]
        rows, names = [], [n for n in NAMES if n in figures["decode0"]]
        for key, name in FIGURES.items():
            row = figures[key]
            rows.append([name, *(number(row[n]) for n in names), *(times(report.ratio(row, n)) for n in ("ingot_exact", "ingot_fast"))])
        peer = next(n for n in names if n.startswith("llama_"))
        over = NAMES[peer].split()[-1]
        parts.append(f"Shape `{shape}`, tokens per second:\n\n" + table(["", *(NAMES[n] for n in names), f"exact / {over}", f"fast / {over}"], rows))
        if detail["info"][peer] is None:
            parts.append("llama.cpp does not run this shape.")
        parts += [line for line in (agreement(figures), skipped(detail), growth(detail), run_of(run, detail)) if line]
        rows = []
        for math, rounds in detail["rows"].items():
            rows.append([math, *(f"{report.over_one(rounds, key):.2f}" for key in ("draft", "streams"))])
        parts.append("Time of a forward pass of 8 rows, as a multiple of 1 row:\n\n" + table(["", "8 of one sequence (a draft of 7)", "8 streams"], rows))
    return "\n\n".join(parts)


def times(ratio):
    return "-" if ratio is None else f"{ratio:.2f}"


def agreement(figures):
    if not figures.get("agreement"):
        return None
    return paragraph(f"Logits of a small unquantized model of this shape, ingot against llama.cpp: cosine {figures['agreement']:.5f}.")


def skipped(detail):
    if not detail.get("skipped"):
        return None
    return paragraph(
        "Rows whose logits are not needed skip the layers that share keys and values: prefill 512 in one chunk is "
        f"{report.skipping(detail):.2f} times as fast (exact) as with all rows in all layers."
    )


def growth(detail):
    if not detail.get("growth"):
        return None
    rows = []
    for d in (detail["growth"]["short"], detail["growth"]["long"]):
        attention, token = d["attention"] * 1e3, d["token"] * 1e3
        rows.append([d["depth"], f"{d['fixed'] / 1e6:.1f}", f"{d['positions'] / 1e6:.1f}", f"{token:.2f}", f"{token - attention:.2f}"])
    head = ["context", "state of scans, MB", "keys and values, MB", "a token, ms", "without attention, ms"]
    return "One sequence of ingot (exact), by its length:\n\n" + table(head, rows)


def run_of(run, detail):
    """Date and load of a shape's run, if it is not the page's run."""
    if "others" not in detail or detail is first(run):
        return None
    return paragraph(
        f"{detail['date']}, medians of {detail['rounds']} rounds in {detail['minutes']:.0f} minutes; "
        f"load by other programs: {detail['others']['median']:.0%} in the median, {detail['others']['most']:.0%} at most."
    )


def limits(run):
    result = run["result"]
    rows = [
        ["memory bandwidth, reading 512 MiB", f"{result['read_gbps']:.1f} GB/s"], ["f32 multiply-adds", f"{result['fma_gflops']:.0f} GFLOP/s"],
        ["int16 products of pairs", f"{result['i16_gops']:.0f} GOP/s"], ["int8 products of pairs", f"{result['i8_gops']:.0f} GOP/s"],
        *([f"gathered product, one row per expert, {n} of 64 experts, {math}", f"{v:.1f} GB/s, {v / result['read_gbps']:.0%} of the bandwidth"]
          for math, g in run.get("gathered", {}).items() for n, v in g.items()),
    ]
    parts = [table(["measured in the same rounds", ""], rows)]
    for shape in run["shapes"]:
        own, bound = {**result, **result[shape]}, report.decode_limit(result, shape)
        rows = [
            ["memory bandwidth in its rounds", f"{own['read_gbps']:.1f} GB/s"], ["weights read per token", f"{own['bytes_per_token'] / 1e6:.1f} MB"],
            ["decode at most", f"{bound:.1f} tokens/s"],
            *([f"of which {NAMES[n]}", f"{v / bound:.0%}"] for n, v in own["decode0"].items() if v and v > bound / 100),
        ]
        parts.append(table([f"shape `{shape}`", ""], rows))
    return "\n\n".join(parts)


def profile(run):
    parts = []
    for shape, detail in run["shapes"].items():
        rows = []
        for math, p in detail["profile"].items():
            rows.append([math, *(f"{p[k] * 1e3:.2f}" for k in ("wall", "kernels")), f"{report.overhead(p):.1%}", *(f"{p[k] * 1e3:.2f}" for k in ("build", "wait", "free"))])
        parts.append(f"Shape `{shape}`, milliseconds per token:\n\n" + table(["", "all", "in kernels", "outside", "graph in Go", "evaluation", "freeing"], rows))
        kinds = sorted({kind for p in detail["profile"].values() for kind in p["nodes"]}, key=lambda k: -detail["profile"]["exact"]["nodes"].get(k, {"seconds": 0})["seconds"])
        rows = []
        for kind in kinds:
            cells = [p["nodes"].get(kind, {"calls": 0, "seconds": 0}) for p in detail["profile"].values()]
            rows.append([kind, f"{cells[0]['calls']:.0f}", *(f"{c['seconds'] * 1e3:.3f}" for c in cells)])
        if rows:
            parts.append("Kernels by kind:\n\n" + table(["", "calls", *(f"{math}, ms" for math in detail["profile"])], rows))
    return "\n\n".join(parts)


def accuracy(run):
    columns = ("quantization", "rounding", "exact", "fast", "exact_outlier", "fast_outlier")
    head = ["", "quantization itself", "rounding to bf16", "exact", "fast", "exact, outliers", "fast, outliers"]
    return table(head, [[a["type"], *(f"{a[c]:.1e}" for c in columns)] for a in run["accuracy"]])


BLOCKS = {
    "machine": machine, "speed": speed, "limits": limits, "profile": profile, "accuracy": accuracy,
    "plot": lambda run: f"![Tokens per second on the CPU]({PLOT})",
}


def fill(page, run):
    """The page with its blocks written anew; a block that the page lacks is an error."""
    for name, block in BLOCKS.items():
        pattern = re.compile(rf"(<!-- bench-cpu {name} -->\n).*?(<!-- end -->)", re.S)
        if not pattern.search(page):
            sys.exit(f"{PAGE} has no place for {name}: <!-- bench-cpu {name} --> and <!-- end -->")
        page = pattern.sub(lambda m: f"{m[1]}\n{block(run)}\n\n{m[2]}", page)
    return page


def main():
    try:
        with open(RUNS) as f:
            run = json.load(f)
    except FileNotFoundError:
        sys.exit(f"{RUNS} does not exist: make bench-cpu writes it")
    with open(PAGE) as f:
        page = f.read()
    page = fill(page, run)
    with open(PAGE, "w") as f:
        f.write(page)
    with open(os.path.join(os.path.dirname(PAGE), PLOT), "w") as f:
        f.write(plot.svg(run["result"], next(name for name, detail in run["shapes"].items() if detail is first(run))))


if __name__ == "__main__":
    main()
