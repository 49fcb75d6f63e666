"""The texts that tokenizers are trained and compared on, and the form of a comparison."""

import random

WORDS = (
    "the of and to in is that it was for on with as his they be at one have this from or had by word but not what all "
    "were we when your can said there use an each which she do how their if will up other about out many then them these "
    "so some her would make like him into time has look two more write go see number no way could people my than first "
    "water been call who oil its now find long down day did get come made may part I'm don't we'll they've you're he'd "
    "it's token model weights layer tensor quantize registry manifest engine über straße naïve café déjà façade "
    "Привет мир это токен слово 你好 世界 模型 こんにちは カタカナ 日本語 안녕하세요 세계 مرحبا بالعالم שלום नमस्ते दुनिया สวัสดี Ελληνικά"
).split()
CONTRACTIONS = "'s 'S 't 'T 're 'RE 'rE 've 'VE 'm 'M 'll 'LL 'lL 'd 'D '\u017f 'x ' 'sS 'S's 'reve \u2019s".split()
DIGITS = ["0", "7", "42", "123", "2024", "3.14", "1,000,000", "٣٤٥", "१२३", "²³", "½", "Ⅻ", "①②", "１２３", "\U0001d7d9",
          "\U0001e5f1", "\U00010d40", "\U00011de0\U00016ff4"]
SPACES = [" ", "  ", "   ", "          ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", " \n \n ", "\u00a0", "\u3000",
          "\u2003", "\u2028", "\u0085", "\x0b", "\x0c", " " * 37, "\n" * 9, "\u200b", "\ufeff"]
PUNCTUATION = [".", ",", "!", "?", "...", "!!!", "?!", "--", "://", "/", "//\n/", "()", "[]", "{}", "<>", "\"", "'", "''", "`", "@",
               "#", "$", "€", "%", "^", "&", "*", "_", "+", "=", "~", "|", "\\", "—", "…", "«»", "、", "。", "！", "¿", "∑", "→", "§", "©"]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "❤️", "☺", "🏴\U000e0067\U000e0062\U000e007f", "🫠", "\U0001fae9"]
MARKS = ["e\u0301", "\u0301", "a\u0315\u0300\u05ae\u0062", "q\u0323\u0307", "\u1e9b\u0323", "각", "\u1100\u1161\u11a8", "\uac00\u11a8", "ﬁ", "Å",
         "\u212b", "\u0344", "\u0958", "\u0b47\u0b57", "\u09c7\u09be", "\u1dfa\u0301", "a\u1df6\u0301", "\U00011938", "\U00011935\U00011930", "o" + "\u0301\u0323" * 20,
         "क्षि", "ก็", "\u0e33", "\u30ab\u3099", "\U0001d15e", "㌀", "½", "ﷺ", "\u3300\u0345"]
CONTROL = ["\x00", "\x01", "\x07", "\x1b[0m", "\x7f", "\x80", "\x9f", "\ufffd", "\ue000", "\U0010ffff", "\ufffe", "\u202e", "\u00ad"]
CODE = ["def f(x):\n    return x\n", "if (a<b && c>=d) { i++; }\n", "\t\t#include <stdio.h>\r\n", "https://example.org/a?b=c&d#e",
        "<div class=\"x\">", "x_1 = camelCaseWord + HTTPServer2", "SELECT * FROM t;", "日本ABC語def", "ABCdefGHI", "iPhone's", "O'REILLY'S"]


def corpus():
    """Returns lines to train on: words of different frequency, numbers, punctuation and some code."""
    rng = random.Random(1)
    lines = []
    for _ in range(3000):
        words = []
        for _ in range(rng.randint(3, 14)):
            words.append(WORDS[min(int(rng.expovariate(0.04)), len(WORDS) - 1)])
        line = " ".join(words)
        if rng.random() < 0.3:
            line = line.capitalize() + rng.choice([".", "!", "?", ", 12", " 2024."])
        if rng.random() < 0.05:
            line = rng.choice(CODE)
        lines.append(line)
    return lines


def random_piece(rng, specials):
    kind = rng.randrange(14)
    if kind < 4:
        w = rng.choice(WORDS)
        return rng.choice([w, w, w.upper(), w.capitalize(), " " + w])
    if kind == 4:
        return rng.choice(WORDS) + rng.choice(CONTRACTIONS)
    if kind == 5:
        return rng.choice(DIGITS)
    if kind == 6:
        return rng.choice(SPACES)
    if kind == 7:
        return rng.choice(PUNCTUATION)
    if kind == 8:
        return rng.choice(EMOJI + CONTROL)
    if kind == 9:
        return rng.choice(MARKS)
    if kind == 10:
        return rng.choice(CODE)
    if kind == 11 and specials:
        s = rng.choice(specials)
        return rng.choice([s, " " + s + " ", s[: len(s) // 2], s + s, "  \n" + s + "\t x", "a" + s + "b"])
    if kind == 12:
        c = rng.choice([rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x3000), rng.randrange(0x110000)])
        return "" if 0xD800 <= c <= 0xDFFF else chr(c)
    return rng.choice([" ", "\n", "a", "1", "'"]) * rng.randint(1, 6)


def random_bytes(rng, specials):
    """Returns the bytes of a random text; one text of eight is malformed."""
    data = "".join(random_piece(rng, specials) for _ in range(rng.randint(0, 24))).encode()
    if rng.random() < 0.125:
        data = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            at = rng.randint(0, len(data))
            if rng.random() < 0.5 and data:
                del data[at : at + rng.randint(1, 2)]
            else:
                data[at:at] = bytes(rng.choice([0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0xED, 0xA0, 0xF0, 0x9F, 0xF4, 0x90, 0xFF]) for _ in range(rng.randint(1, 3)))
    return bytes(data)


FIXED = (
    ["", " ", "a", "\n", "'", "Hello, world!", "hello  world   x", "don't DON'T I'm I'LL we\u2019ve x'\u017f", "abc123def4567 89 1234567890"]
    + ["  leading", "trailing  ", "\t\ttabs\n\n\nlines\r\n\r\n  x", "a" * 300, "ab" * 150, " " * 100 + "x", "\n" * 50, "1" * 50, "!" * 70]
    + ["".join(chr(c) for c in range(128)), "".join(chr(c) for c in range(128, 256)), "".join(EMOJI), " ".join(MARKS), " ".join(DIGITS)]
    + [" ".join("we" + c for c in CONTRACTIONS), "x".join(SPACES), "".join(PUNCTUATION), "\n".join(CODE), " ".join(CONTROL), " ".join(WORDS)]
)
MALFORMED = [b"\xff", b"a\x80b", b"\xe2\x82", b"\xe2\x82x", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80\xf0\x9f", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80",
             b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xc3\xa9\xc3", b"\xf8\x88\x80\x80\x80", b"caf\xe9 cr\xe8me"]


def encoded(t, data):
    text = data.decode("utf-8", "replace")
    out = {"text": text} if text.encode() == data else {"hex": data.hex()}
    out["ids"] = t.encode(text, add_special_tokens=False).ids
    special = t.encode(text, add_special_tokens=True).ids
    if special != out["ids"]:
        out["special"] = special
    return out


def decoded(t, ids):
    out = {"ids": ids, "text": t.decode(ids, skip_special_tokens=False)}
    skip = t.decode(ids, skip_special_tokens=True)
    if skip != out["text"]:
        out["skip"] = skip
    return out
