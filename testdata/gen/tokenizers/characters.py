"""Writes tokenizer/chars/unicode.bin: what the reference's regular expressions and normalizers know of each character.

The file holds runs of characters: the run's length less one, shifted left by 6 bits, with the flags, as a varint.
"""

from tokenizers import Regex, normalizers, pre_tokenizers

from store import PACKAGE

# The order is that of the constants in tokenizer/chars/classes.go.
CATEGORIES = (
    "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()
)
SPACE_CONTROL = len(CATEGORIES)  # the control characters that \s matches


def matched(pattern, text):
    """Returns the characters of text that a one-character pattern matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    return {ord(c) for piece, _ in split.pre_tokenize_str(text) for c in piece}


def main():
    chars = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    text = "".join(map(chr, chars))
    category = [CATEGORIES.index("Cs")] * 0x110000
    for i, name in enumerate(CATEGORIES):
        if name != "Cs":
            for c in matched(r"\p{%s}" % name, text):
                category[c] = i
    control = CATEGORIES.index("Cc")
    separators = {CATEGORIES.index(z) for z in ("Zs", "Zl", "Zp")}
    space = matched(r"\s", text)
    for c in range(0x110000):
        if (c in space) != (category[c] in separators):
            assert c in space and category[c] == control, hex(c)
            category[c] = SPACE_CONTROL

    # A character is active if the reference's normalization tables give it a decomposition or a combining class. They
    # are of Unicode 9.0, older than its regular expressions.
    nfd, nfkd = normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str

    def active(c):
        s = chr(c)
        if nfkd(s) != s:
            return True
        before, after = "a\u0315" + s, "a" + s + "\u0334"  # classes 232 and 1: one of them is reordered
        return nfd(before) != before or nfd(after) != after

    out = bytearray()
    flags = [category[c] | 32 * (not 0xD800 <= c <= 0xDFFF and active(c)) for c in range(0x110000)]
    start = 0
    for c in range(1, 0x110001):
        if c < 0x110000 and flags[c] == flags[start]:
            continue
        n = (c - start - 1) << 6 | flags[start]
        while n >= 0x80:
            out.append(n & 0x7F | 0x80)
            n >>= 7
        out.append(n)
        start = c
    (PACKAGE / "chars" / "unicode.bin").write_bytes(out)
    print("unicode.bin", len(out), "bytes")


if __name__ == "__main__":
    main()
