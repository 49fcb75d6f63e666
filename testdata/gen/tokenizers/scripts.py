"""Writes tokenizer/chars/scripts.bin: the characters that the reference's UnicodeScripts takes for one script.

The library itself is the source: its tables are of Unicode 9, with exceptions. The file holds runs of characters: the
run's length less one, as a varint, and the number of the script. Script 0 joins any other.
"""

import pathlib

from tokenizers import pre_tokenizers

CHARS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
scripts = pre_tokenizers.UnicodeScripts()


def cuts(text):
    """Returns the offsets where the text is split, without 0."""
    return {start for _, (start, _) in scripts.pre_tokenize_str(text)} - {0}


def goes_with(letter):
    text = letter + "".join(chr(c) + letter for c in CHARS)
    at = cuts(text)
    return {c for i, c in enumerate(CHARS) if not {2 * i + 1, 2 * i + 2} & at}


def main():
    anything = goes_with("a") & goes_with("\u044f")
    chars = [c for c in CHARS if c not in anything]
    at = cuts("".join(map(chr, chars)))
    known = []  # a character of each script
    number = dict.fromkeys(CHARS, 0)
    current = 0
    for i, c in enumerate(chars):
        if i == 0 or i in at:
            text = chr(c) + "".join(chr(k) + chr(c) for k in known)
            split = cuts(text)
            same = [n for n in range(len(known)) if 2 * n + 1 not in split]
            assert len(same) < 2
            if not same:
                known.append(c)
            current = (same or [len(known) - 1])[0] + 1
        number[c] = current
    assert len(known) < 256
    out = bytearray()
    start = 0
    value = lambda c: number.get(c, 0)
    for c in range(1, 0x110001):
        if c < 0x110000 and value(c) == value(start):
            continue
        n = c - start - 1
        while n >= 0x80:
            out.append(n & 0x7F | 0x80)
            n >>= 7
        out += bytes([n, value(start)])
        start = c
    path = pathlib.Path(__file__).resolve().parents[3] / "tokenizer" / "chars" / "scripts.bin"
    path.write_bytes(out)
    print(len(known), "scripts,", len(anything), "characters of any;", len(out), "bytes")


if __name__ == "__main__":
    main()
