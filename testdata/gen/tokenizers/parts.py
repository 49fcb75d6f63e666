"""Writes testdata/tokenizers/parts.json: results of the reference's single normalizers, pre-tokenizers, decoders,
post-processors and models.
"""

import base64
import json
import random

from tokenizers import Tokenizer

import build
import charsmap
import families
from material import random_piece
from store import write

WORDS = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
CHARSMAP = base64.b64encode(charsmap.build(families.CHARSMAP)).decode()


def bert(**on):
    return {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False, **on}


NORMALIZERS = [
    {"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "Nmt"}, {"type": "ByteLevel"}, {"type": "NFKD"}, {"type": "Precompiled", "precompiled_charsmap": CHARSMAP},
    {"type": "Strip", "strip_left": True, "strip_right": False}, {"type": "Strip", "strip_left": False, "strip_right": True}, {"type": "Strip", "strip_left": True, "strip_right": True},
    bert(clean_text=True), bert(handle_chinese_chars=True), bert(strip_accents=True), bert(lowercase=True), bert(lowercase=True, strip_accents=None), bert(clean_text=True, strip_accents=None),
    {"type": "Replace", "pattern": {"Regex": "[aeiou]+|\\s"}, "content": "<>"}, {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
]
PRE_TOKENIZERS = [
    *({"type": "Punctuation", "behavior": b} for b in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")), {"type": "Punctuation"},
    {"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"}, {"type": "CharDelimiterSplit", "delimiter": "e"}, {"type": "FixedLength", "length": 3},
    {"type": "Digits", "individual_digits": True}, {"type": "Digits", "individual_digits": False},
    *({"type": "Metaspace", "replacement": r, "prepend_scheme": p, "split": s} for p in ("first", "always", "never") for s in (True, False) for r in ("▁", "_")),
    {"type": "UnicodeScripts"}, {"type": "Metaspace", "replacement": "▁"}, {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True, "str_rep": "▁"},
    {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}]},
]
TOKENS = ["▁the", "the", "▁", " ", "  ", "##s", "s", "##", "a</w>", "</w>", "b", "<pad>", "|", "<0x41>", "<0xC3>", "<0xa9>", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "<0xZZ>", "<0x+1>",
          ".", " n", "n't", "'", "do", "not", " do not", "'s", "Ġx", "Ã©", "é", "日", "aXb", "XX", "!", "?", ",", "_", "a|b", " '", "' ", "abab", "ba"]
STRIP = lambda c, a, b: {"type": "Strip", "content": c, "start": a, "stop": b}
REPLACE = lambda p, c: {"type": "Replace", "pattern": p, "content": c}
SEQ = lambda *d: {"type": "Sequence", "decoders": list(d)}
FUSE, BYTES = {"type": "Fuse"}, {"type": "ByteFallback"}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
METASPACE = lambda p: {"type": "Metaspace", "replacement": "▁", "prepend_scheme": p, "split": True}
WORDPIECE = lambda c: {"type": "WordPiece", "prefix": "##", "cleanup": c}
CTC = lambda c: {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": c}
PLAIN = [BYTE_LEVEL, BYTES, FUSE, REPLACE({"String": "ab"}, "-"), REPLACE({"Regex": "[ab]+"}, "-"), METASPACE("first"), METASPACE("never"), WORDPIECE(True), WORDPIECE(False),
         {"type": "BPEDecoder", "suffix": "</w>"}, CTC(True), CTC(False)]
DECODERS = [None, SEQ(), *PLAIN, STRIP(" ", 1, 0), STRIP("a", 2, 0), *(SEQ(FUSE, d) for d in PLAIN), *(SEQ(d, BYTES) for d in PLAIN), *(SEQ(BYTES, d) for d in PLAIN), *(SEQ(BYTES, FUSE, d) for d in PLAIN),
            SEQ(FUSE, STRIP("▁", 2, 0)), SEQ(REPLACE({"String": "▁"}, " "), BYTES, FUSE, STRIP(" ", 1, 0)), SEQ(CTC(True), WORDPIECE(True)), SEQ(SEQ(FUSE), REPLACE({"String": "aba"}, "é"))]


def main():
    rng = random.Random(11)
    texts = ["", " ", "  a b  ", "the end", "_a_ b", "▁the▁ end", "Ab1２3½-x_y's.  z!!?", "ÀÉÎ\u0301 ǅ İSTANBUL ΑΣ", "\u0301x\t\n日本 語ｱﾞ", "\ufeffﬁ\u0301 Ⅷ…", "e\u0301\u200b\u00ad©™", "$+<=>^`|~ §¶"]
    texts += ["".join(random_piece(rng, []) for _ in range(rng.randint(3, 9))) for _ in range(10)]
    texts += ["".join(chr(rng.choice([rng.randrange(0x250), rng.randrange(0x3000), rng.randrange(0xE000), rng.randrange(0xE000, 0x30000)])) for _ in range(60)) for _ in range(6)]
    texts = [t.encode("utf-8", "replace").decode() for t in texts]
    texts += ["これはテスト東京です。 Apples are りんご", "\u0440\u0443\u0441 abc\u0430\u30fc\u30fca\u0301 \uac01x", " ,. 12"]
    load = lambda **parts: Tokenizer.from_str(json.dumps(build.tokenizer(WORDS, **parts)))
    out = {"texts": texts, "tokens": TOKENS, "normalizers": [], "pre_tokenizers": [], "decoders": [], "posts": []}
    for j in NORMALIZERS:
        out["normalizers"].append({"part": j, "texts": [load(normalizer=j).normalizer.normalize_str(t) for t in texts]})
    for j in PRE_TOKENIZERS:
        t = load(pre_tokenizer=j)
        out["pre_tokenizers"].append({"part": j, "pieces": [[p for p, _ in t.pre_tokenizer.pre_tokenize_str(x)] for x in texts]})
    lists = [[], *([i] for i in range(0, len(TOKENS), 5)), *([rng.randrange(len(TOKENS)) for _ in range(rng.randint(2, 12))] for _ in range(24))]
    out["lists"] = lists
    for j in DECODERS:
        t = Tokenizer.from_str(json.dumps(build.tokenizer({"type": "WordLevel", "vocab": {x: i for i, x in enumerate(TOKENS)}, "unk_token": "s"}, decoder=j)))
        texts_ = []
        for x in lists:
            try:
                texts_.append(t.decode(x))
            except BaseException:  # with some decoders the library panics on an empty list
                texts_.append(None)
        out["decoders"].append({"part": j, "texts": texts_})
    pair = lambda kind, **more: {"type": kind, "sep": ["a", 7], "cls": ["b", 8], **more}
    for j in [pair("BertProcessing"), pair("RobertaProcessing", trim_offsets=True, add_prefix_space=False)]:
        t = load(post_processor=j)
        out["posts"].append({"part": j, "ids": t.encode("a").ids})
    write(families.DATA / "parts.json", out)


if __name__ == "__main__":
    main()
