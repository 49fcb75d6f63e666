"""Builds precompiled charsmaps as SentencePiece writes them: the length of a trie, the trie as a double array of the Darts-clone
layout, and the replacements, each ended by a zero byte."""

import struct


def build(entries):
    """entries: {text: replacement}. Each node has 256 slots to itself: simple, and small enough for a few hundred entries."""
    pool = bytearray()
    root = {}
    for text, to in entries.items():
        node = root
        for b in text.encode():
            node = node.setdefault(b, {})
        node[None] = len(pool)
        pool += to.encode() + b"\0"
    units = {}
    blocks = 1  # the root is in block 0

    def place(at, label, node):
        nonlocal blocks
        base = blocks * 256
        blocks += 1
        offset = at ^ base
        assert offset < 1 << 21
        units[at] = offset << 10 | (None in node) << 8 | label
        if None in node:
            units[base] = 1 << 31 | node[None]
        for b, child in node.items():
            if b is not None:
                place(base ^ b, b, child)

    place(0, 0, root)
    array = [units.get(i, 0) for i in range(blocks * 256)]
    return struct.pack("<I%dI" % len(array), 4 * len(array), *array) + bytes(pool)
