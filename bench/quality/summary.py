"""Prints what the quality benchmark found: how ingot compares with its peers, and where the time went."""

import collections


def targets(model, rows, sizes, bits, fastest):
    """Ratios of divergences at a size, and of speeds at a divergence."""
    by = {row["name"]: row for row in rows}
    of = lambda kind: [by[n] for n in (f"llama {kind}", f"llama {kind} imatrix") if n in by]
    for kind in sizes:
        ours = by.get(f"ingot searched, size of {kind}")
        if ours and of(kind):
            say(model, f"size of {kind}", ours, min(of(kind), key=lambda r: r["kl"]))
    for number in bits:
        ours = by.get(f"ingot searched {number}bpw")
        small = [r for r in rows if not r["name"].startswith("ingot") and ours and r["bytes"] <= number / ours["bpw"] * ours["bytes"]]
        if small:
            say(model, f"{number} bits per weight", ours, min(small, key=lambda r: r["kl"]))
        elif ours:
            print(f"{model}: {number} bits per weight: KL {ours['kl']:.5f}; no peer is as small")
    peers = [r for r in of(fastest) if r["decode_tps"]]
    for name, row in by.items():
        if peers and row["decode_tps"] and name.startswith(f"ingot searched for speed, KL of {fastest}"):
            rate = max(p["decode_tps"] for p in peers)
            print(f"{model}: {name}: KL {row['kl'] / min(p['kl'] for p in peers):.2f} times, decode {row['decode_tps'] / rate:.2f} times")


def say(model, what, ours, peer):
    print(f"{model}: {what}: KL {ours['kl']:.5f} at {ours['bytes']:,} bytes, {ours['kl'] / peer['kl']:.2f} times "
          f"that of {peer['name']}, {peer['kl']:.5f} at {peer['bytes']:,} bytes")


def times(models, build):
    """Seconds of each part and of all, which is less than the sum: some parts run beside others."""
    first, everything = 0, []
    if build.exists():
        first = float(build.read_text())
        print(f"{'build of the peers':24}{first:6.0f} s")
    for model, known in models.items():
        parts = collections.defaultdict(list)
        for took in known.values():
            parts[took["part"]].append((took["begin"], took["end"]))
        for part, spans in parts.items():
            print(f"{model + ': ' + part:24}{covered(spans):6.0f} s")
            everything += spans
    print(f"{'all':24}{first + covered(everything):6.0f} s")


def covered(spans):
    """Seconds in which at least one of the spans runs."""
    total = until = 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total
