// Makes the calls of the examples of Ollama's JavaScript package.
// Usage: node calls.mjs ORIGIN PICTURE, with the models story, talk, calls and sees.
// Prints a line of JSON for each case: {"case":..., "error":...}.
import assert from 'node:assert/strict';
import { Ollama } from 'ollama';

const [host, picture] = process.argv.slice(2);
const client = new Ollama({ host });
const options = { temperature: 0, num_predict: 8 };
const messages = [{ role: 'user', content: 'Once upon a time' }];
const number = { type: 'integer', minimum: 0, maximum: 9 };
const object = (properties) => ({
	type: 'object', properties, required: Object.keys(properties), additionalProperties: false,
});

async function join(stream, text) {
	let all = '';
	for await (const part of stream) all += text(part);
	return all;
}

const cases = {
	async chat() {
		const whole = await client.chat({ model: 'talk', messages, options });
		const parts = await client.chat({ model: 'talk', messages, options, stream: true });
		assert.equal(await join(parts, (p) => p.message.content), whole.message.content);
		assert.equal(whole.done_reason, 'length');
	},
	async generate() {
		const whole = await client.generate({ model: 'story', prompt: 'Once upon a time', options });
		const parts = await client.generate({ model: 'story', prompt: 'Once upon a time', options, stream: true });
		assert.equal(await join(parts, (p) => p.response), whole.response);
		assert.ok(whole.context.length > 8);
	},
	async thinking() {
		for (const think of [true, 'low', 'medium', 'high']) {
			const response = await client.chat({ model: 'talk', messages, think, options });
			assert.ok(response.message.thinking);
		}
	},
	async tools() {
		const tools = [{ type: 'function', function: { name: 'add', parameters: object({ a: number, b: number }) } }];
		// A model this small calls nothing by itself.
		const format = object({ name: { const: 'add' }, parameters: object({ a: number, b: number }) });
		for (const stream of [false, true]) {
			const history = [...messages];
			const response = await client.chat({
				model: 'calls', messages: history, tools, format, stream, options: { temperature: 0, num_predict: 80 },
			});
			for await (const part of stream ? response : [response]) {
				if (!part.message.tool_calls) continue;
				history.push(part.message);
				for (const call of part.message.tool_calls) {
					assert.match(call.id, /^call_/);
					const { a, b } = call.function.arguments;
					history.push({ role: 'tool', tool_name: call.function.name, content: String(a + b) });
				}
			}
			assert.equal(history.length, 3);
			assert.ok((await client.chat({ model: 'calls', messages: history, tools, options })).done);
		}
	},
	async format() {
		const format = object({ friends: { type: 'array', items: object({ name: { type: 'string' }, age: number }) } });
		const response = await client.chat({
			model: 'talk', messages, format, options: { temperature: 0, num_predict: 200 },
		});
		assert.ok(Array.isArray(JSON.parse(response.message.content).friends));
	},
	async logprobs() {
		const response = await client.chat({ model: 'talk', messages, options, logprobs: true, top_logprobs: 3 });
		assert.equal(response.logprobs.length, 8);
		for (const entry of response.logprobs) {
			assert.ok(entry.logprob.toFixed(3) <= 0);
			assert.equal(entry.top_logprobs.length, 3);
		}
	},
	async pictures() {
		const seen = await client.generate({ model: 'sees', prompt: 'describe:', images: [picture], options, stream: true });
		await join(seen, (p) => p.response);
		const asked = [{ role: 'user', content: 'describe:', images: [picture] }];
		assert.ok((await client.chat({ model: 'sees', messages: asked, options })).done);
	},
	async abort() {
		const endless = { model: 'story', prompt: 'Once', stream: true, options: { num_predict: 5000 } };
		const other = new Ollama({ host });
		const streams = await Promise.all([client.generate(endless), client.generate(endless), other.generate(endless)]);
		const ended = streams.slice(0, 2).map((s) => assert.rejects(join(s, (p) => p.response), { name: 'AbortError' }));
		client.abort();
		await Promise.all(ended);
		for await (const part of streams[2]) {
			assert.equal(part.done, false);
			break;
		}
		other.abort();
	},
	async context() {
		const long = [...messages, { role: 'assistant', content: 'word '.repeat(700) }, { role: 'user', content: 'Hi' }];
		const response = await client.chat({ model: 'talk', messages: long, options });
		assert.ok(response.prompt_eval_count < 100);
		const small = { ...options, num_ctx: 24, num_predict: 60, num_keep: 5, typical_p: 0.9 };
		assert.equal((await client.generate({ model: 'story', prompt: 'Once upon', options: small })).eval_count, 60);
	},
	async embed() {
		const both = await client.embed({ model: 'story', input: ['Hello, world!', 'lamp '.repeat(700)] });
		assert.equal(both.embeddings.length, 2);
		const cut = { model: 'story', input: 'lamp '.repeat(700), truncate: false };
		await assert.rejects(client.embed(cut), { message: /context length/, status_code: 400 });
		assert.equal((await client.embeddings({ model: 'story', prompt: 'Hi' })).embedding.length, both.embeddings[0].length);
	},
	async models() {
		for await (const part of await client.pull({ model: 'story', stream: true })) assert.ok(part.status);
		const template = '{{ .Prompt }}{{ if .Suffix }} ... {{ .Suffix }}{{ end }}';
		await client.create({ model: 'filler', from: 'STORY', template, system: 'Be kind.', license: ['a', 'b'] });
		const filled = await client.generate({ model: 'filler', prompt: 'def add(', suffix: 'return c', options });
		assert.ok(filled.response);
		const shown = await client.show({ model: 'Filler' });
		assert.deepEqual(shown.capabilities, ['completion', 'insert']);
		assert.equal(shown.model_info['general.architecture'], 'llama');
		await client.copy({ source: 'filler', destination: 'twin' });
		const names = (await client.list()).models.map((m) => m.name);
		assert.ok(names.includes('twin:latest'));
		for (const model of ['filler', 'twin']) await client.delete({ model });
		await assert.rejects(client.show({ model: 'twin' }), { message: "model 'twin' not found", status_code: 404 });
		assert.ok((await client.ps()).models.every((m) => m.size > 0));
		assert.ok((await client.version()).version);
	},
};

for (const [name, run] of Object.entries(cases)) {
	let error = '';
	try {
		await run();
	} catch (e) {
		error = String(e?.stack ?? e).slice(0, 500);
	}
	console.log(JSON.stringify({ case: name, error }));
}
