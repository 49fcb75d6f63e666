"""The texts on which tokenizers are compared with the reference, and digests of the results.

A generator draws them from the pieces in testdata/tokenizers/pieces.json. The Go test (tokenizer/texts_test.go) has the
same generator.
"""

import hashlib
import json
import struct

import material

BATCH = 100  # texts per digest
COUNT = 10_000


def pieces():
    """Returns lists of pieces. The generator chooses a list, then one of its pieces."""
    words = material.WORDS
    return [
        words, [" " + w for w in words], [" " + w for w in words], [w.upper() for w in words] + [w.capitalize() for w in words],
        material.CONTRACTIONS, material.DIGITS, material.SPACES, material.PUNCTUATION, material.EMOJI + material.CONTROL, material.MARKS, material.CODE,
        ["\u2581", "\u2581\u2581", "\u2581a", "a\u2581", "<0x41>", "<0xE6>", "##s", "</w>", "ﬁ\u0301", "Ⅷ", "ｱﾞ", "㍿", "ǆ", "İ", "ΑΣ", "ẞ", "\u1e9b\u0323", "\ufb03",
         "\u00a9\u200d\u00a9\u0308", "\u0600a", "क\u094d\u0958\u0308", "\U0001f1e9\U0001f1ea\U0001f1eb", "\u1100\u1161\u11a8", "\u200b", "\u00ad", "\ufffd"],
    ]


class Random:
    """Knuth's MMIX generator: the upper 31 bits of the state."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


def make(rng, lists, specials):
    """Returns the bytes of a text; one text of eight is malformed."""
    out = bytearray()
    for _ in range(rng.below(20)):
        kind = rng.below(len(lists) + 4)
        if kind < len(lists):
            out += lists[kind][rng.below(len(lists[kind]))].encode()
        elif kind == len(lists):
            c = rng.below([0x80, 0x800, 0x3000, 0x110000][rng.below(4)])
            out += (chr(c) if not 0xD800 <= c <= 0xDFFF else "\ufffd").encode()
        elif kind == len(lists) + 1:
            out += [" ", "a", "\n", "é"][rng.below(4)].encode() * (1 + rng.below(40))
        elif specials:
            s = specials[rng.below(len(specials))]
            out += [s, " " + s + " ", s + s, "a" + s + "b"][rng.below(4)].encode()
    if rng.below(8) == 0:
        for _ in range(1 + rng.below(3)):
            at = rng.below(len(out) + 1)
            out[at:at] = bytes([[0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0xED, 0xA0, 0xF0, 0x9F, 0xF4, 0x90, 0xFF][rng.below(12)]])
    return bytes(out)


def digests(encode, decode, specials, size, count=COUNT):
    """Returns 8 hexadecimal digits for each batch of texts, with encode(text, special) and decode(ids, skip)."""
    rng = Random(2026)
    lists = pieces()
    out = []
    for _ in range(count // BATCH):
        h = hashlib.sha256()
        for _ in range(BATCH):
            text = make(rng, lists, specials).decode("utf-8", "replace")
            ids = encode(text, False)
            special = encode(text, True)
            noise = [rng.below(size) for _ in range(rng.below(8))]
            for x in (ids, special):
                h.update(struct.pack("<i%di" % len(x), len(x), *x))
            for x, skip in ((ids, False), (special, True), (noise, False)):
                s = decode(x, skip).encode()
                h.update(struct.pack("<i", len(s)) + s)
        out.append(h.hexdigest()[:8])
    return out


def write_pieces(path):
    path.write_text(json.dumps(pieces(), ensure_ascii=True, separators=(",", ":")) + "\n")
