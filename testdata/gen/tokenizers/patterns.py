"""Writes tokenizer/testdata/patterns.json and normalize.json: how the reference splits texts by patterns, and what its
normalization forms return.
"""

import random

from tokenizers import Regex, normalizers, pre_tokenizers

from material import MARKS, random_piece
from store import DATA, write
from trained import DEEPSEEK, GPT2, LLAMA3, O200K, QWEN2, QWEN35

OTHER_PATTERNS = [
    r"\p{N}{1,3}+", r"\p{L}++[a-z]?", r"(?:ab|a)(?:c|bcd)", r"(?>ab|a)(?:c|bcd)", r"a{2}", r"a{2}?b", r"a{,2}b", r"a{1,}?b", r"(a|b)+?c", r"\h+", r"\H", r"\w+", r"\W", r"(\w+|[^\w\s]+)", r"\d{1,3}(?=(?:\d{3})*\b)", r"\b.|x\B", r"[\w]+|[\W]",
    r"\d+", r"\D+", r"[[:punct:]]+", r"[[:space:]]+|[^[:space:]]", r"[a-z&&[^aeiou]]+", r"[\p{L}&&[^\p{Han}]]+", r"[\p{Han}]+", r"[^\p{Han}\s]", r"\P{L}+", r"\p{^N}+",
    r"^.", r".$", r"(?<=\n)[a-z]", r"(?<!a)b", r"(?=b).", r"\A.", r".\z", r"(?i)AB|c", r"a(?i)B|C", r"(?i:[a-k])+", r"(?i:[^s])", r"(?i:'[sS]|K)", r"(?-i:ab)", r"\x41|\x{1F600}|é",
    r"[\x{4e00}-\x{9fff}]+", r"[\-\]a]+", r"[a\]]", r"[a-]+", r"\.\*\[", r"\t|\n|\r|\f|\v|\e|\a", "", "a*", "(?=a)", r"\s*", r"x?", "\u200d|\ufe0f",
    r"[^\S\r\n]+", r"\s?\p{L}+\s?", r"[a-zA-Z]+|[0-9]|[^\sa-zA-Z0-9]+|\s+", r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", r"[^\r\n]*[\r\n]+|[^\r\n]+",
    r"(?:\r?\n)+(?!\r?\n)| +(?= )", r"\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})", r"[一-龥]|[a-z]+", r"[\p{P}\p{S}]+", r"\$\{[^}]*\}|\{|\}",
]
SCANNED = [
    GPT2, LLAMA3, QWEN2, QWEN35, O200K, *DEEPSEEK,
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
    r" ?[\p{L}\p{M}]+| ?\p{N}+|\s+(?!\S)|\s+", r"\p{N}+", r"\p{N}",
]
# Parts with numbers, which rules recognize.
RULED = [
    r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", r"\d{1,3}(?=(\d{3})*(?!\d))", r"[0-9]{1,4}(?=(?:[0-9]{4})*(?![0-9]))", r"\p{Nd}{1,2}(?=(?:\p{Nd}{2})*\b)", r"[0-9]{1,3}(?=(?:[0-9]{3})*\b)| ?\p{L}+",
    r"(?=(\d{3})+(?!\d))", r"(?=(?:\p{N}{2})+(?!\p{N}))",
    r"\s*[\r\n]+|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}", r"\s{2,3}(?!\S)|\p{N}{1}|\p{N}{1,5}", r"\s*[\r\n]+| ?\p{L}+",
]
LITERALS = [" ", "ab", "", "\n\n", "é", "."]


def patterns():
    rng = random.Random(7)
    texts = ["", "ab½²x ¼\u2460", "aab abcd aaab", "a\nb\nab\n", "\nab\n\n", "it's IT'S it'\u017f \u212aelvin k", "x12345 日本語ABC def", "${a} {} a-b]c [x]", "  a  b\r\n\r\n c \t\n", "  \n  \n\n  x"]
    texts += ["".join(random_piece(rng, []) for _ in range(rng.randint(4, 14))) for _ in range(6)]
    texts += ["1 12 123 1234 12345678901²34567 1234x 123_4567 1234\u06615678 \u0661\u0662\u0663\u0664", "a         b  \n     c   \n\n\t\t\t\u3000 x          "]
    behaviours = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
    out = []
    for expr, kind in [(p, "Regex") for p in SCANNED + OTHER_PATTERNS + RULED] + [(p, "String") for p in LITERALS]:
        entry = {"kind": kind, "pattern": expr, "pieces": []}
        for i, text in enumerate(texts):
            b = "isolated" if i >= 10 else behaviours[(i + len(out)) % 5]
            invert = i % 4 == 3
            s = pre_tokenizers.Split(Regex(expr) if kind == "Regex" else expr, b, invert=invert)
            pieces = [p for p, _ in s.pre_tokenize_str(text)] if text else []
            entry["pieces"].append({"behavior": "".join(w.capitalize() for w in b.split("_")), "invert": invert, "pieces": pieces})
        out.append(entry)
    write(DATA / "patterns.json", {"texts": texts, "patterns": out})


def normalize():
    rng = random.Random(9)
    texts = [" ".join(MARKS), "".join(MARKS), "\u0301\u0323a\u0323\u0301", "a" + "\u0301" * 40 + "\u0323" * 3, "\u1100\u1161\u11a7\u1100\u1161\u11a8\u11a8\ud7a3"]
    pool = [chr(c) for c in list(range(0x300, 0x345)) + [0x41, 0x65, 0x1E9B, 0x212B, 0x1100, 0x1161, 0x11A8, 0xAC00, 0xAC01, 0x9C7, 0x9BE, 0x1DFA, 0x8D0, 0x11935, 0x11930, 0xFB01]]
    texts += ["".join(rng.choice(pool) for _ in range(rng.randint(2, 14))) for _ in range(60)]
    forms = {"NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(), "NFKD": normalizers.NFKD()}
    write(DATA / "normalize.json", [{"text": t, **{name: f.normalize_str(t) for name, f in forms.items()}} for t in texts])


if __name__ == "__main__":
    patterns()
    normalize()
