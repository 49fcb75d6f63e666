"""Builds precompiled charsmaps as SentencePiece writes them: the length of the trie, the trie as a double array in
the layout of Darts-clone, and the replacements, each ended by a zero byte.
"""

import itertools
import struct


def build(entries):
    """Returns the charsmap of {text: replacement}."""
    pool = bytearray()
    root = {}
    for text, to in entries.items():
        node = root
        for b in text.encode():
            node = node.setdefault(b, {})
        node[None] = len(pool)
        pool += to.encode() + b"\0"
    units = {0: 0}
    bases = set()
    jobs = [(0, 0, root)]
    while jobs:
        at, label, node = jobs.pop()
        slots = [0 if b is None else b for b in node]
        # The first base whose slots are free. A slot stores its label and not its parent, so bases are unique.
        base = next(x for x in itertools.count(1) if x not in bases and all(x ^ b not in units for b in slots))
        bases.add(base)
        assert at ^ base < 1 << 21
        units[at] = (at ^ base) << 10 | (None in node) << 8 | label
        units.update((base ^ b, 0) for b in slots)
        if None in node:
            units[base] = 1 << 31 | node[None]
        jobs += [(base ^ b, b, child) for b, child in node.items() if b is not None]
    array = [units.get(i, 0) for i in range((max(*units, *bases) | 255) + 1)]  # a lookup may use any byte
    return struct.pack("<I%dI" % len(array), 4 * len(array), *array) + bytes(pool)
