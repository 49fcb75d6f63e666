"""OpenAI's own Python package: files, batches, and completions that are scored."""

import json
import unittest

import openai
from clients import CHAT_MODEL, MODEL, STORY, URL, wait


def line(id, url, **body):
    return json.dumps({"custom_id": id, "method": "POST", "url": url, "body": body}) + "\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
        self.addCleanup(self.client.close)


class Batches(Case):
    def upload(self, text):
        return self.client.files.create(file=("in.jsonl", text.encode()), purpose="batch")

    def ended(self, batch):
        self.assertTrue(wait(lambda: self.client.batches.retrieve(batch.id).status in ("completed", "failed", "cancelled"), 60))
        return self.client.batches.retrieve(batch.id)

    def results(self, file):
        return [json.loads(r) for r in self.client.files.content(file).text.splitlines()]

    def test_batch(self):
        chat = "/v1/chat/completions"
        messages = [{"role": "user", "content": STORY}]
        text = "".join(line(f"r{i}", chat, model=CHAT_MODEL, messages=messages, max_tokens=4, temperature=0) for i in range(5))
        file = self.upload(text + "no request\n" + line("none", chat, model="none", messages=messages))
        self.assertEqual((file.object, file.purpose, file.status, file.filename), ("file", "batch", "processed", "in.jsonl"))
        self.assertEqual(self.client.files.retrieve(file.id).bytes, file.bytes)
        batch = self.client.batches.create(input_file_id=file.id, endpoint=chat, completion_window="24h", metadata={"for": "a test"})
        done = self.ended(batch)
        self.assertEqual((done.status, done.metadata), ("completed", {"for": "a test"}))
        self.assertEqual((done.request_counts.total, done.request_counts.completed, done.request_counts.failed), (7, 5, 2))
        good, bad = self.results(done.output_file_id), self.results(done.error_file_id)
        self.assertEqual([r["custom_id"] for r in good], [f"r{i}" for i in range(5)])
        alone = self.client.chat.completions.create(model=CHAT_MODEL, messages=messages, max_tokens=4, temperature=0)
        for r in good:
            self.assertEqual(r["response"]["body"]["choices"][0]["message"]["content"], alone.choices[0].message.content)
        self.assertIn("line 6", bad[0]["error"]["message"])
        self.assertEqual(bad[1]["response"]["status_code"], 404)
        self.assertIn(batch.id, [b.id for b in self.client.batches.list(limit=1)])
        self.assertLessEqual({file.id, done.output_file_id, done.error_file_id}, {f.id for f in self.client.files.list()})
        for id in (file.id, done.output_file_id, done.error_file_id):
            self.assertTrue(self.client.files.delete(id).deleted)
        with self.assertRaises(openai.NotFoundError):
            self.client.files.retrieve(file.id)

    def test_cancel(self):
        text = "".join(line(str(i), "/v1/completions", model=MODEL, prompt=STORY, max_tokens=400, ignore_eos=True) for i in range(300))
        file = self.upload(text)
        batch = self.client.batches.create(input_file_id=file.id, endpoint="/v1/completions", completion_window="24h")
        self.assertEqual(self.client.batches.cancel(batch.id).status, "cancelling")
        self.assertEqual(self.ended(batch).status, "cancelled")
        self.client.files.delete(file.id)

    def test_refused(self):
        with self.assertRaisesRegex(openai.BadRequestError, "purpose"):
            self.client.files.create(file=("a.jsonl", b"x"), purpose="assistants")
        with self.assertRaisesRegex(openai.BadRequestError, "input_file_id"):
            self.client.batches.create(input_file_id="file-x", endpoint="/v1/completions", completion_window="24h")
        with self.assertRaises(openai.NotFoundError):
            self.client.batches.retrieve("batch_x")


class Scores(Case):
    def complete(self, **more):
        return self.client.completions.create(model=MODEL, temperature=0, **more)

    def test_echo(self):
        both = self.complete(prompt=[STORY, "Twice"], echo=True, logprobs=1, max_tokens=1)
        for choice, text in zip(both.choices, (STORY, "Twice")):
            probs = choice.logprobs
            self.assertTrue(choice.text.startswith(text))
            self.assertIsNone(probs.token_logprobs[0])
            self.assertTrue(all(p <= 0 for p in probs.token_logprobs[1:]))
            self.assertTrue(all(max(top.values()) >= p for p, top in zip(probs.token_logprobs[1:], probs.top_logprobs[1:])))
        streamed = list(self.complete(prompt=STORY, echo=True, logprobs=1, max_tokens=1, stream=True))
        parts = [c.choices[0] for c in streamed if c.choices]
        self.assertEqual("".join(c.text for c in parts), both.choices[0].text)
        offsets = sum((c.logprobs.text_offset for c in parts if c.logprobs), [])
        self.assertEqual(offsets, both.choices[0].logprobs.text_offset)

    def test_sums(self):
        """The logprob of a text is the sum of those of the tokens that it is made of, also with more text after it."""
        whole = self.complete(prompt=STORY + " there was", echo=True, logprobs=0, max_tokens=0).choices[0]
        part = self.complete(prompt=STORY, echo=True, logprobs=0, max_tokens=0).choices[0]
        n = len(part.logprobs.tokens)
        self.assertEqual((whole.finish_reason, whole.text, whole.logprobs.tokens[:n]), ("length", STORY + " there was", part.logprobs.tokens))
        for a, b in zip(part.logprobs.token_logprobs[1:], whole.logprobs.token_logprobs[1:n]):
            self.assertAlmostEqual(a, b, places=2)


if __name__ == "__main__":
    unittest.main()
