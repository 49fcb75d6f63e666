"""Makes what the tests of package tokenizer compare with, and the package's Unicode table, with the reference library.

Usage: tokenizer_fixtures.py fixtures | config | unicode | sample NAME COUNT SEED

  fixtures  trains tokenizers on text that it makes up and writes tokenizer/testdata/NAME/{tokenizer.json,
            tokenizer_config.json,golden.json}, and small.json, patterns.json, normalize.json: what the reference makes
            of small hand-written tokenizers, of split patterns and of the normalization forms
  config    writes tokenizer/testdata/config.json: what transformers makes of tokenizer_config.json
  unicode   writes tokenizer/chars/unicode.bin: what the reference's regular expressions and normalizers know of each character
  sample    prints COUNT made-up texts for fixture NAME with the reference's ids, one JSON object a line, for
            go test ./tokenizer -run TestSamples -samples FILE

Needs Python 3.9 or later and tokenizers 0.23.3; config needs transformers 5.23 too. Equal runs give equal bytes.
"""

import argparse
import json
import pathlib
import random
import shutil
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

REPO = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = REPO / "tokenizer"
DATA = PACKAGE / "testdata"


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(path.relative_to(REPO), path.stat().st_size, "bytes")


# ---------------------------------------------------------------------------------------------------------------------
# Unicode

# The order is that of the constants in tokenizer/chars/classes.go.
CATEGORIES = (
    "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()
)
SPACE_CONTROL = len(CATEGORIES)  # the control characters that \s matches


def matched(pattern, text):
    """The characters of text that a one-character pattern matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    return {ord(c) for piece, _ in split.pre_tokenize_str(text) for c in piece}


def unicode_table():
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

    # A character is active when the reference's normalization tables (Unicode 9.0, older than its regular
    # expressions) give it a decomposition or a combining class.
    nfd, nfkd = normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str

    def active(c):
        s = chr(c)
        if nfkd(s) != s:
            return True
        before, after = "a\u0315" + s, "a" + s + "\u0334"  # classes 232 and 1: one of them trades places
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


# ---------------------------------------------------------------------------------------------------------------------
# Text

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
    """Text to train on: words by a made-up frequency, in lines, with numbers, punctuation and some code."""
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
    """The bytes of a text; in one of eight malformed."""
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


# ---------------------------------------------------------------------------------------------------------------------
# Trained tokenizers

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = ["\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **options})


def train(pre, size, specials=(), normalizer=None):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    t.train_from_iterator(corpus(), trainer)
    return t


def bos_template(t, bos, eos=None):
    special = [(s, t.token_to_id(s)) for s in (bos, eos) if s]
    single = " ".join([bos, "$A"] + ([eos] if eos else []))
    return processors.TemplateProcessing(single=single, pair=single + " $B:1", special_tokens=special)


def make_gpt2():
    t = train(byte_level(use_regex=True), 480)
    t.add_special_tokens(["<|endoftext|>"])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    # The published file: no type, merges as "a b", empty strings for what is not there.
    def edit(j):
        m = j["model"]
        m.update(unk_token="", continuing_subword_prefix="", end_of_word_suffix="", merges=[" ".join(x) for x in m["merges"]])
        for key in ("type", "byte_fallback", "ignore_merges"):
            del m[key]
    return t, {"model_max_length": 1024, "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}, edit


def make_starcoder():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True, add_prefix_space=True)])
    t = train(pre, 400, ["<|endoftext|>", "<fim_prefix>"])
    return t, {"bos_token": "<|endoftext|>", "eos_token": {"__type": "AddedToken", "content": "<|endoftext|>", "lstrip": False, "normalized": False,
                                                          "rstrip": False, "single_word": False}, "add_prefix_space": True}, None


def make_llama3():
    t = train(pre_tokenizers.Sequence([split(LLAMA3), byte_level()]), 512)
    t.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"])
    # Not of the published file: each property of an added token.
    t.add_tokens([AddedToken("<left>", lstrip=True, normalized=False), AddedToken("<right>", rstrip=True, normalized=False),
                  AddedToken("<both>", lstrip=True, rstrip=True), AddedToken("word", single_word=True), AddedToken("<eot"), AddedToken("  ", normalized=False),
                  AddedToken("<|eot_id|><|eot_id|>", normalized=False)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), bos_template(t, "<|begin_of_text|>")])
    def edit(j):
        j["model"]["ignore_merges"] = True
        j["model"]["vocab"].update({"Ġzzz": 512 - 256 + 1000, "zzz": 2000})  # reached by ignore_merges only, with holes
    return t, {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "clean_up_tokenization_spaces": True, "add_bos_token": False}, edit


def make_qwen():
    t = train(pre_tokenizers.Sequence([split(QWEN2), byte_level()]), 450, normalizer=normalizers.NFC())
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    t.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False), AddedToken("caf\u00e9", normalized=True)])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t, {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": True, "split_special_tokens": False,
               "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}, None


def make_qwen35():
    t = train(pre_tokenizers.Sequence([split(QWEN35), byte_level()]), 400, normalizer=normalizers.NFC())
    t.add_special_tokens(["<|im_end|>"])
    return t, {"bos_token": None, "eos_token": "<|im_end|>"}, None


def make_o200k():
    t = train(pre_tokenizers.Sequence([split(O200K), byte_level()]), 450)
    t.add_special_tokens(["<|startoftext|>", "<|endoftext|>"])
    t.post_processor = bos_template(t, "<|startoftext|>", "<|endoftext|>")
    return t, {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>"}, None


def make_deepseek():
    t = train(pre_tokenizers.Sequence([split(p) for p in DEEPSEEK] + [byte_level()]), 400)
    t.add_special_tokens(["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"])
    t.post_processor = bos_template(t, "<｜begin▁of▁sentence｜>")
    return t, {"bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>"}, None


TRAINED = {"gpt2": make_gpt2, "starcoder": make_starcoder, "llama3": make_llama3, "qwen": make_qwen, "qwen35": make_qwen35,
           "o200k": make_o200k, "deepseek": make_deepseek}


def specials_of(t):
    return [a.content for a in t.get_added_tokens_decoder().values()]


def golden(t, seed, count):
    rng = random.Random(seed)
    specials = specials_of(t)
    data = [x.encode() for x in FIXED] + MALFORMED
    data += ["{0}{0}x {0} y\n{0}".format(s).encode() for s in specials] + [" ".join(specials).encode()]
    data += [random_bytes(rng, specials) for _ in range(count)]
    cases = [encoded(t, d) for d in data]
    size = t.get_vocab_size() + 8
    ids = [c.get("special", c["ids"]) for c in cases if len(c["ids"]) < 60][::3]
    ids += [[rng.randrange(size) for _ in range(rng.randint(0, 20))] for _ in range(40)]
    return {"encode": cases, "decode": [decoded(t, x) for x in ids]}


def fixtures():
    for seed, (name, make) in enumerate(TRAINED.items()):
        t, config, edit = make()
        j = json.loads(t.to_str())
        if edit:
            edit(j)
        t = Tokenizer.from_str(json.dumps(j))
        write(DATA / name / "tokenizer.json", j)
        write(DATA / name / "tokenizer_config.json", config)
        write(DATA / name / "golden.json", golden(t, 100 + seed, 60))
    small()
    patterns()
    normalize()


def sample(name, count, seed):
    t = Tokenizer.from_file(str(DATA / name / "tokenizer.json"))
    rng = random.Random(seed)
    specials = specials_of(t)
    size = t.get_vocab_size() + 8
    for _ in range(count):
        data = random_bytes(rng, specials)
        text = data.decode("utf-8", "replace")
        ids = t.encode(text, add_special_tokens=False).ids
        noise = [rng.randrange(size) for _ in range(rng.randint(0, 12))]
        print(json.dumps({"hex": data.hex(), "ids": ids, "special": t.encode(text).ids, "decode": [decoded(t, ids), decoded(t, noise)]}))


# ---------------------------------------------------------------------------------------------------------------------
# Small tokenizers, each for one rule

def added(id, content, **flags):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False, **flags}


def model(tokens, merges=(), **options):
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
            "byte_fallback": False, "vocab": tokens if isinstance(tokens, dict) else {x: i for i, x in enumerate(tokens)},
            "merges": [list(m) if isinstance(m, tuple) else m for m in merges], **options}


def tokenizer(model, **parts):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
            "post_processor": None, "decoder": None, "model": model, **parts}


def template(*pieces, special=()):
    single = [{"Sequence": {"id": "A", "type_id": 0}} if p == "$A" else {"SpecialToken": {"id": p, "type_id": 0}} for p in pieces]
    return {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {s: {"id": s, "ids": ids, "tokens": [s] * len(ids)} for s, ids in special}}


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
ABC = ["<unk>", "a", "b", "c", "d", "ab", "bc", "abc", "aa", "aaa", "aaaa", "é", " "]
ABC_MERGES = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "a"), ("aa", "a"), ("aa", "aa")]
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())


def small_tokenizers():
    texts = ["", "abc", "abcabcabab", "aaaaaaa", "a" * 101, "axyb", "xx", "abx ab", "é", "日本 a", "abécd xyzzy", "a b  c"]
    yield "plain", tokenizer(model(ABC, ABC_MERGES)), texts
    yield "bc before ab", tokenizer(model(ABC, [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")])), texts
    yield "unk", tokenizer(model(ABC, ABC_MERGES, unk_token="<unk>")), texts
    yield "fuse unk", tokenizer(model(ABC, ABC_MERGES, unk_token="<unk>", fuse_unk=True)), texts
    yield "merged unk", tokenizer(model(ABC + ["<unk>a", "<unk><unk>"], ABC_MERGES + [("<unk>", "a"), ("<unk>", "<unk>")], unk_token="<unk>")), texts
    bytes_ = ["<0x%02X>" % b for b in range(256) if b != 0xE6]
    yield "byte fallback", tokenizer(model(ABC + bytes_, ABC_MERGES, unk_token="<unk>", byte_fallback=True)), texts
    yield "byte fallback, fuse", tokenizer(model(ABC + bytes_, ABC_MERGES, unk_token="<unk>", byte_fallback=True, fuse_unk=True)), texts + ["日x", "日日xé"]
    yield "prefix", tokenizer(model(["a", "b", "##a", "##b", "ab", "##ab", "abab", "<unk>"], [("a", "##b"), ("##a", "##b"), ("ab", "##ab")],
                                    continuing_subword_prefix="##", unk_token="<unk>")), texts
    yield "suffix", tokenizer(model(["a", "b", "a</w>", "b</w>", "ab</w>", "ab", "abab</w>"], [("a", "b</w>"), ("a", "b"), ("ab", "ab</w>")],
                                    end_of_word_suffix="</w>")), texts
    yield "suffix, bytes", tokenizer(model(ALPHABET + ["a</w>", "Ġ</w>", "Ġa</w>"], [("Ġ", "a</w>")], end_of_word_suffix="</w>"), pre_tokenizer=BYTES), texts
    yield "equal merges, the last counts", tokenizer(model(ABC, ABC_MERGES + [("a", "b")])), texts
    yield "ignore merges", tokenizer(model(ABC + ["dab", "日本 a"], ABC_MERGES, ignore_merges=True)), texts + ["dab"]
    yield "holes", tokenizer(model({x: 3 * i for i, x in enumerate(ABC)}, ABC_MERGES), added_tokens=[added(99, "<x>"), added(100, "<y>")]), texts + ["a<x>b<y>"]
    yield "sparse", tokenizer(model({x: 10000000 * i for i, x in enumerate(ABC)}, ABC_MERGES)), texts
    yield "no bytes", tokenizer(model([x for x in ALPHABET if x != "b"]), pre_tokenizer=BYTES), texts
    yield "bytes, unk", tokenizer(model([x for x in ALPHABET if x != "b"] + ["<unk>"], unk_token="<unk>", fuse_unk=True), pre_tokenizer=BYTES), texts + ["abbba"]
    yield "empty token", tokenizer(model({"": 3, "a": 0, "b": 1})), texts
    yield "bytes, then split", tokenizer(model(ALPHABET), pre_tokenizer={"type": "Sequence", "pretokenizers": [
        BYTES, {"type": "Split", "pattern": {"String": "Ġ"}, "behavior": "Removed", "invert": False}]}), texts
    full = model(ALPHABET + ["Ġa", "ab"], [("Ġ", "a"), ("a", "b")])
    words = ["a b", " a", "", "hello ab", "ab  a\n", "x" + "  "]
    for prefix in (False, True):
        for regex in (False, True):
            pre = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": False, "use_regex": regex}
            yield f"ByteLevel {prefix} {regex}", tokenizer(full, pre_tokenizer=pre, decoder=pre, added_tokens=[added(300, "<x>")]), words + ["<x>a<x> a"]
    yield "no decoder", tokenizer(full, pre_tokenizer=BYTES, added_tokens=[added(300, "<x>", special=True)]), words + ["a<x> a"]
    yield "empty decoder", tokenizer(full, pre_tokenizer=BYTES, decoder={"type": "Sequence", "decoders": []}), words
    yield "decoder in a sequence", tokenizer(full, pre_tokenizer=BYTES, decoder={"type": "Sequence", "decoders": [BYTES]}), words
    yield "empty pre-tokenizer", tokenizer(full, pre_tokenizer={"type": "Sequence", "pretokenizers": []}), words
    for each in (False, True):
        yield f"Digits {each}", tokenizer(full, pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": each}, BYTES]},
                                          decoder=BYTES), words + ["a12b3", "٣٤ ½Ⅻ²", "\U00011de0a\U00016ff5"]
    # added tokens
    def with_added(*tokens, **parts):
        return tokenizer(full, **{"pre_tokenizer": BYTES, "decoder": BYTES, "added_tokens": list(tokens), **parts})
    spaces = ["a<x>b", "a <x> b", "a  <x>  b", "<x>", " <x> ", "<x><x>", "<x> <x>", "a<x", "\u3000<x>\u2003\n", "<x>y<x>", "é<x>é", "_<x>-", "\u200d<x>", "Ⓐ<x>",
              "<x>Ⅷ", "a <x>  <y> b", "<x><y>", " <y> <x> <y> "]
    for flags in ({}, {"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True}, {"single_word": True}, {"normalized": True}, {"special": True},
                  {"lstrip": True, "rstrip": True, "single_word": True, "normalized": True, "special": True}):
        yield "added " + " ".join(flags), with_added(added(300, "<x>", **flags), added(301, "<y>", special=True, **{k: v for k, v in flags.items() if k != "special"})), spaces
    yield "a space as a token", with_added(added(300, "<x>", rstrip=True), added(301, " "), added(302, "  ")), spaces
    yield "leftmost, then longest", with_added(added(300, "ab"), added(301, "abc"), added(302, "bcde"), added(303, "abcdef")), ["abc", "abcde", "abcdef", "ababcd", "xbcde"]
    yield "longest is no single word", with_added(added(300, "ab"), added(301, "abc", single_word=True)), ["abcd", "abc d", "xabc"]
    yield "added twice", with_added(added(300, "<x>", special=True), added(300, "<x>", lstrip=True)), spaces
    yield "token of the model", with_added(added(7, "ab"), added(8, "a", special=True)), ["abc", "a b", "aab"]
    yield "other ids", with_added(added(900, "<x>"), added(900, "<y>")), spaces
    yield "nothing added", with_added(added(300, "")), ["ab"]
    yield "normalized", with_added(added(300, "É", normalized=True), added(301, "e\u0301", special=True), added(302, "\u1e17", normalized=True, special=True),
                                   normalizer={"type": "NFD"}), ["É", "E\u0301", "é e\u0301", "\u1e17", "e\u0304\u0301x", "aÉb\u00c9"]
    # normalizers
    for n in ({"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "é"},
              {"type": "Replace", "pattern": {"Regex": "[ab]+"}, "content": ""}, {"type": "Prepend", "prepend": "▁"}, {"type": "Sequence", "normalizers": []},
              {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "> "}, {"type": "NFKC"}, {"type": "Replace", "pattern": {"String": "b"}, "content": "cc"}]}):
        yield "normalizer " + json.dumps(n), with_added(added(300, "<x>"), normalizer=n), ["", "a b", "a  b   c<x> b", "ﬁ½ b", "b", "xyz<x><x>"]
    # post-processors
    sp = [("<s>", [5]), ("two", [6, 7])]
    for pieces in (["<s>", "$A"], ["$A", "<s>"], ["<s>", "$A", "two"], ["$A"], ["<s>"], ["$A", "two", "$A"], []):
        yield "template " + " ".join(pieces), with_added(post_processor=template(*pieces, special=sp)), ["", "ab"]
    yield "template in a sequence", with_added(post_processor={"type": "Sequence", "processors": [template("<s>", "$A", special=sp), BYTES]}), ["", "ab"]
    yield "empty post-processor", with_added(post_processor={"type": "Sequence", "processors": []}), ["ab"]


def small():
    out = []
    for name, j, texts in small_tokenizers():
        j = json.loads(json.dumps(j))
        t = Tokenizer.from_str(json.dumps(j))
        cases = [encoded(t, x.encode()) for x in texts]
        seen = sorted({i for c in cases for i in c.get("special", c["ids"])})
        ids = [c.get("special", c["ids"]) for c in cases] + [seen + [299, 298, 300, 301, 302, 303, 304, 1 << 30]]
        out.append({"name": name, "tokenizer": j, "encode": cases, "decode": [decoded(t, x) for x in ids]})
    # Much of the file is the byte-level alphabet: the test puts it in.
    for x in out:
        v = x["tokenizer"]["model"]["vocab"]
        if all(v.get(c) == i for i, c in enumerate(ALPHABET)):
            x["alphabet"] = True
            for c in ALPHABET:
                del v[c]
    write(DATA / "small.json", out)


# ---------------------------------------------------------------------------------------------------------------------
# Split patterns

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
    r" ?[\p{L}\p{M}]+| ?\p{N}+|\s+(?!\S)|\s+", r"\p{N}+", r"\p{N}",
]
LITERALS = [" ", "ab", "", "\n\n", "é", "."]


def patterns():
    rng = random.Random(7)
    texts = ["", "ab½²x ¼\u2460", "aab abcd aaab", "a\nb\nab\n", "\nab\n\n", "it's IT'S it'\u017f \u212aelvin k", "x12345 日本語ABC def", "${a} {} a-b]c [x]", "  a  b\r\n\r\n c \t\n", "  \n  \n\n  x"]
    texts += ["".join(random_piece(rng, []) for _ in range(rng.randint(4, 14))) for _ in range(6)]
    behaviours = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
    out = []
    for expr, kind in [(p, "Regex") for p in SCANNED + OTHER_PATTERNS] + [(p, "String") for p in LITERALS]:
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


# ---------------------------------------------------------------------------------------------------------------------
# tokenizer_config.json

def config():
    from transformers import PreTrainedTokenizerFast

    base = tokenizer(model(ALPHABET + ["Ġa", "ab", "<s>", "</s>"], [("Ġ", "a"), ("a", "b")]), pre_tokenizer=BYTES, decoder=BYTES,
                     added_tokens=[added(258, "<s>", special=True), added(259, "</s>", special=True)])
    posts = {"none": None, "bos": template("<s>", "$A", special=[("<s>", [258])]),
             "both": template("<s>", "$A", "</s>", special=[("<s>", [258]), ("</s>", [259])]), "ByteLevel": BYTES}
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    configs = [{}, {"bos_token": "<s>", "eos_token": "</s>"}]
    configs += [{"bos_token": bos, "eos_token": "</s>", "add_bos_token": b, "add_eos_token": e} for bos in ("<s>", None) for b in (True, False) for e in (True, False)]
    configs += [
        {"bos_token": "<bos>"}, {"bos_token": "ab"}, {"bos_token": ""}, {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"},
        {"bos_token": {"__type": "AddedToken", "content": "<s>", **flags, "lstrip": True}},
        {"bos_token": {"__type": "AddedToken", "content": "<bos>", **flags, "lstrip": True}},
        {"added_tokens_decoder": {"258": {"content": "<s>", **flags, "lstrip": True, "special": True}}},
        {"added_tokens_decoder": {"500": {"content": "<x>", **flags, "special": False}}},
        {"added_tokens_decoder": {"500": {"content": "<x>", **flags, "special": False}}, "eos_token": "<x>"},
        {"added_tokens_decoder": {"9": {"content": "<y>"}, "10": {"content": "<x>"}}},
        {"image_token": "<x>"}, {"additional_special_tokens": ["<x>", "ab"]}, {"extra_special_tokens": ["<y>", "<x>"]}, {"extra_special_tokens": {"video_token": "<x>"}},
        {"extra_special_tokens": [{"__type": "AddedToken", "content": "<x>", **flags, "lstrip": True}]},
        {"split_special_tokens": True}, {"add_prefix_space": True}, {"clean_up_tokenization_spaces": True}, {"model_max_length": 2},
    ]
    texts = ["ab a", "a <s> b </s>", "<x> <y><bos>", "a . b !"]
    cases = []
    folder = pathlib.Path(tempfile.mkdtemp())
    for post, processor in posts.items():
        for c in configs if post in ("none", "bos") else configs[:10]:
            (folder / "tokenizer.json").write_text(json.dumps({**base, "post_processor": processor}))
            (folder / "tokenizer_config.json").write_text(json.dumps({**c, "tokenizer_class": "PreTrainedTokenizerFast"}))
            t = PreTrainedTokenizerFast.from_pretrained(folder)
            runs = []
            for text in texts:
                ids = t.encode(text)
                runs.append({"text": text, "ids": t.encode(text, add_special_tokens=False), "special": ids, "decode": t.decode(ids), "skip": t.decode(ids, skip_special_tokens=True)})
            cases.append({"post": post, "config": c, "bos": t.bos_token_id, "eos": t.eos_token_id, "runs": runs})
    shutil.rmtree(folder)
    for c in ALPHABET:
        del base["model"]["vocab"][c]
    write(DATA / "config.json", {"tokenizer": base, "posts": posts, "cases": cases})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("fixtures", "config", "unicode"):
        commands.add_parser(name)
    command = commands.add_parser("sample")
    command.add_argument("name", choices=sorted(TRAINED))
    command.add_argument("count", type=int)
    command.add_argument("seed", type=int)
    args = parser.parse_args()
    if args.command == "sample":
        sample(args.name, args.count, args.seed)
    else:
        {"fixtures": fixtures, "config": config, "unicode": unicode_table}[args.command]()


if __name__ == "__main__":
    main()
