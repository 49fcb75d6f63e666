"""Writes testdata/gen/real/texts.json: 400 texts that tokenizers are compared on, and the prompts of each model of
`make test-real`. A text joins one to four fragments of one kind, or of all kinds; the choice is pseudo-random with a fixed seed."""

import json
import random
from pathlib import Path

KINDS = {
    "prose": [
        "The quick brown fox doesn't jump over 13 lazy dogs; it's resting.", "I'd've said so, she'll agree: THEY'RE wrong!", "Naïve façade, coöperate, Ærøskøbing.",
        "In 1969, 3.14159 and 1,234,567.89 were 50% of £99.", "e.g. U.S.A. -- (see p. 12f.)", "Straße, Übergröße, ÄÖÜ", "an e\u0301 composed of two, and \u00e9 of one",
    ],
    "code": [
        "def f(x: int) -> list[str]:\n    return [f'{i:>4}' for i in range(x)]\n", "for (int i = 0; i < n; ++i) {\n\t\tsum += a[i] * b[i];\n\t}\n", "SELECT * FROM t WHERE a <> 'b''c' AND d >= 10;",
        "#include <stdio.h>\r\nint main(void) { puts(\"hi\\n\"); }\r\n", "x=$(echo \"${y//a/b}\" | sed -e 's/\\//_/g')", "const f = async ({a, ...b}) => `${a?.b ?? 0}`;", "<div class=\"a-b\">&nbsp;</div>", "        return None\n\n\n\nclass A:\n    pass",
    ],
    "tools": [
        '{"name": "get_weather", "arguments": {"city": "Z\\u00fcrich", "days": [1, 2, 3]}}', '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>', "<function=read_file>\n<parameter=path>\n/etc/hosts\n</parameter>\n</function>",
        '[TOOL_CALLS] [{"name": "add", "arguments": {"a": -1.5e-7}}]', '{"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/y"}]}}}', "```json\n{\"ok\": true}\n```",
    ],
    "chinese": ["今天天气很好，我们去公园吧。", "人工智能（AI）正在改变世界！", "「你好」，他说：“再见”。", "龍鳳呈祥，萬事如意", "第３章　１２３４５", "日本語のテキストとカタカナ、ひらがな。", "한국어 문장입니다. 안녕하세요?", "𠮷野家で𩸽を食べる"],
    "arabic": ["السلام عليكم ورحمة الله وبركاته", "ذهبتُ إلى المدرسةِ في السّاعة ٨:٣٠ صباحًا.", "שלום עולם, מה שלומך?", "नमस्ते दुनिया, यह एक वाक्य है।", "สวัสดีชาวโลก", "Привет, мир! Ёлка.", "Γειά σου Κόσμε", "Tiếng Việt có dấu: ướt, ngữ"],
    "emoji": ["👍🏽 great 🎉🎉", "👨‍👩‍👧‍👦 family", "🇩🇪🇫🇷 flags", "☺️ ☺ ❤️‍🔥", "1️⃣2️⃣", "a🙂b🙃c", "\U0001f9d1\u200d\U0001f4bb", "∀x∈ℝ: ∃y ≤ ⌈x⌉ ∧ ½ ≠ ⅓"],
    "space": [" ", "  ", "   a   b    c", "\n", "\n\n\n", "\t\ta\tb", " \n \n ", "a\r\nb\rc", "\u00a0no\u00a0break\u2003em\u3000ideographic", "a" + " " * 40 + "b", "trailing   ", "\u200bzero\u200dwidth\ufeff", "a\u2028b\u2029c\u0085d"],
    "special": [
        "<|im_start|>user\nhi<|im_end|>\n", "<bos><start_of_turn>model\nhi<end_of_turn>", "<s> [INST] a [/INST] b </s>", "<unk><pad><mask>", "<|endoftext|>", "<|im_start|", "|im_end|>", "<|im_start|><|im_start|> <|im_end|>x",
        "<start_of_image>", "<unused12>", "<0x0A><0xFF>", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "▁under▁bar", "Ġ Ċ bytes", "<h1>", "[multimodal]", "\u0000nul\u0007bell",
    ],
}

COUNT = 400
CHATML = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
QUESTIONS = ["What is the capital of France?", "Write a Python function that returns the n-th Fibonacci number."]
PLAIN = ["The mitochondrion is the part of the cell that", "def quicksort(items):\n", "La capitale de la France est", "Once upon a time, in a small village by the sea,"]


def main():
    rng = random.Random(55)
    mixed = [f for fragments in KINDS.values() for f in fragments]
    texts = list(mixed)
    while len(texts) < COUNT:
        pool = rng.choice([*KINDS.values(), mixed, mixed, mixed])
        texts.append(rng.choice(["", " ", "\n"]).join(rng.choice(pool) for _ in range(rng.randint(2, 4))))
    chats = [CHATML.format(q) for q in QUESTIONS]
    # SmolLM2's are in llamacpp.py.
    prompts = {"smollm2": [], "gemma3": PLAIN, "qwen2.5-coder-0.5b": chats + PLAIN[:2], "qwen2.5-coder-1.5b": chats + PLAIN[:2]}
    out = Path(__file__).with_name("texts.json")
    out.write_text(json.dumps({"prompts": prompts, "texts": texts}, ensure_ascii=True, indent=0) + "\n")


main()
