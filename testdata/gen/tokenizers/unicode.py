"""Writes unicode_more.bin and lowercase.bin in tokenizer/chars: the properties that the reference's normalizers and
pre-tokenizers use.

The library itself is the source: its parts follow Unicode 8, 9 and 16 side by side.
"""

import base64
import json
import pathlib

from tokenizers import Tokenizer, normalizers, pre_tokenizers

import charsmap

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "tokenizer" / "chars"
CHARS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
TEXT = "".join(map(chr, CHARS))

# The order is that of the constants in tokenizer/chars/properties.go.
OTHER, BERT_MARK, PUNCTUATION, MARK, WORD = 1, 2, 4, 8, 16
PLAIN, JOINS, JOINS_CONJUNCT, LINKER, PREPEND, CONTROL, PICTOGRAPH, CONSONANT = (x << 5 for x in range(8))


def kept(pre):
    return {ord(c) for piece, _ in pre.pre_tokenize_str(TEXT) for c in piece}


def normalizer(entries):
    """Returns a tokenizer whose Precompiled normalizer has {text: replacement}."""
    blob = base64.b64encode(charsmap.build(entries)).decode()
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "pre_tokenizer": None, "post_processor": None,
            "decoder": None, "normalizer": {"type": "Precompiled", "precompiled_charsmap": blob},
            "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}
    return Tokenizer.from_str(json.dumps(file)).normalizer.normalize_str


def asked(normalize, text, chars=CHARS):
    """Returns the characters c with which, in text.format(c), the character mapped to U+E000 absorbs what follows."""
    # One line per character: a line feed always separates graphemes.
    chars = [c for c in chars if c not in (10, 13)]
    lines = normalize("\n".join(text.replace("_", chr(c)) for c in chars)).split("\n")
    assert len(lines) == len(chars)
    return {c: line for c, line in zip(chars, lines)}


def graphemes():
    a = normalizer({"a": "\ue000"})
    copyright = normalizer({"\u00a9": "\ue000"})
    letter = normalizer({"\u0958": "\ue000"})
    swallowed = lambda lines, mark: {c for c, line in lines.items() if mark not in line.split("\ue000")[-1]}
    out = dict.fromkeys(CHARS, PLAIN)
    joins = {c for c, line in asked(a, "a_").items() if chr(c) not in line and chr(c) != "a"}
    # Graphemes of six bytes or more are not looked up, so the second character must be alone with its mark.
    single = lambda normalize, text, mark, chars=CHARS: {c for c, line in asked(normalize, text, chars).items() if not line.endswith(mark)}
    prepend = set(CHARS) - single(a, "_a\u0308", "\u0308") - {10, 13}
    pictograph = set(CHARS) - single(copyright, "_\u200d\u00a9\u0308", "\u0308") - {10, 13}
    linker = set(CHARS) - single(letter, "\u0915_\u0958\u0308", "\u0308") - {10, 13}
    conjunct = set(CHARS) - single(letter, "\u0915\u094d_\u0958\u0308", "\u0308") - {10, 13}
    consonant = set(CHARS) - single(letter, "_\u094d\u0958\u0308", "\u0308") - {10, 13}
    six = normalizer({"\u0600": "\ue000"})
    control = {c for c, line in asked(six, "\u0600_", [c for c in CHARS if c < 0x10000]).items() if chr(c) in line} | {10, 13}
    for chars, value in ((joins, JOINS), (joins & conjunct, JOINS_CONJUNCT), (joins & linker, LINKER), (prepend, PREPEND), (control, CONTROL),
                         (pictograph - joins - control, PICTOGRAPH), (consonant - joins - prepend, CONSONANT)):
        print(len(chars), end=" ")
        for c in chars:
            out[c] = value
    print("graphemes")
    return out


def main():
    bert = lambda **on: normalizers.BertNormalizer(**{"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False, **on})
    clean, strip = bert(clean_text=True).normalize_str, bert(strip_accents=True).normalize_str
    accents = normalizers.StripAccents().normalize_str
    punctuation = set(CHARS) - kept(pre_tokenizers.Punctuation("removed"))
    assert punctuation == set(CHARS) - kept(pre_tokenizers.Sequence([pre_tokenizers.Punctuation("removed")]))
    space = set(CHARS) - kept(pre_tokenizers.WhitespaceSplit())
    words = {c for piece, _ in pre_tokenizers.Whitespace().pre_tokenize_str("\n".join("a" + chr(c) + "a" for c in CHARS))
             for c in ([ord(piece[1])] if len(piece) == 3 else [])}
    classes = graphemes()
    flags = [0] * 0x110000
    for c in CHARS:
        s = chr(c)
        flags[c] = (OTHER * (clean(s) == "") | BERT_MARK * (strip(s) == "") | PUNCTUATION * (c in punctuation) | MARK * (accents(s) == "")
                    | WORD * (c in words) | classes[c])
    print(len(space), "white space;", {hex(c) for c in CHARS if clean(chr(c)) == " " and c not in space | {9, 10, 13}}, "more for Bert")
    out = bytearray()
    start = 0
    for c in range(1, 0x110001):
        if c < 0x110000 and flags[c] == flags[start]:
            continue
        n = c - start - 1
        while n >= 0x80:
            out.append(n & 0x7F | 0x80)
            n >>= 7
        out += bytes([n, flags[start]])
        start = c
    (PACKAGE / "unicode_more.bin").write_bytes(out)
    print("unicode_more.bin", len(out), "bytes")

    lower = normalizers.Lowercase().normalize_str
    out = bytearray()
    last = 0
    for c in CHARS:
        to = lower(chr(c))
        if to == chr(c):
            continue
        if len(to) != 1:
            assert (c, to) == (0x130, "i\u0307")  # in the code
            continue
        delta = ord(to) - c
        for n in (c - last, delta * 2 if delta >= 0 else -delta * 2 - 1):
            while n >= 0x80:
                out.append(n & 0x7F | 0x80)
                n >>= 7
            out.append(n)
        last = c
    (PACKAGE / "lowercase.bin").write_bytes(out)
    print("lowercase.bin", len(out), "bytes")


if __name__ == "__main__":
    main()
