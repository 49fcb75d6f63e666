// Asks for each Zod type with openai-js and with the AI SDK, and parses the response with the type.
// Usage: node zod.mjs ORIGIN MODEL
// Prints a line of JSON for each case: {"client":..., "case":..., "error":...}.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, Output, tool } from 'ai';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat, zodFunction } from 'openai/helpers/zod';
import { z } from 'zod';
import { types, wider } from './types.mjs';

const [origin, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: origin + '/v1', apiKey: 'none', maxRetries: 0 });
const provider = createOpenAICompatible({ name: 'ingot', baseURL: origin + '/v1', supportsStructuredOutputs: true });
const messages = [{ role: 'user', content: 'A value.' }];
const tokens = 150;

async function run(name, of, ask) {
	let error = '';
	try {
		await ask();
	} catch (e) {
		const text = String(e?.message ?? e);
		const bad = text.includes('bad format');
		if (bad || !wider.includes(of)) error = text.slice(0, 300);
	}
	console.log(JSON.stringify({ client: name, case: of, error }));
}

// responseFormat is the format of a type. zodResponseFormat refuses optional properties, as OpenAI's own server does:
// such types are sent as the schema that Zod makes.
function responseFormat(type) {
	try {
		return zodResponseFormat(type, 'value');
	} catch {
		return { type: 'json_schema', json_schema: { name: 'value', schema: z.toJSONSchema(type, { io: 'input' }) } };
	}
}

for (const [name, inner] of Object.entries(types)) {
	const type = z.object({ value: inner });
	await run('openai-js', name, async () => {
		const answer = await client.chat.completions.create({ model, messages, max_tokens: tokens, temperature: 0,
			response_format: responseFormat(type) });
		type.parse(JSON.parse(answer.choices[0].message.content));
	});
	await run('ai-sdk', name, async () => {
		const answer = await generateText({ model: provider(model), maxRetries: 0, maxOutputTokens: tokens, temperature: 0,
			messages, output: Output.object({ schema: type }) });
		type.parse(answer.output);
	});
}

const point = z.object({ x: z.int().min(0).max(9), label: z.enum(['a', 'b']) });
await run('openai-js', 'parse', async () => {
	const answer = await client.chat.completions.parse({ model, messages, max_tokens: tokens,
		response_format: zodResponseFormat(point, 'point') });
	point.parse(answer.choices[0].message.parsed);
});
await run('openai-js', 'responses', async () => {
	const answer = await client.responses.parse({ model, input: 'A value.', max_output_tokens: tokens,
		text: { format: zodTextFormat(point, 'point') } });
	point.parse(answer.output_parsed);
});
await run('openai-js', 'tool', async () => {
	const answer = await client.chat.completions.parse({ model, messages, max_tokens: tokens, tool_choice: 'required',
		tools: [zodFunction({ name: 'take', parameters: point })] });
	point.parse(answer.choices[0].message.tool_calls[0].function.parsed_arguments);
});
await run('ai-sdk', 'tool', async () => {
	const answer = await generateText({ model: provider(model), maxRetries: 0, maxOutputTokens: tokens, messages,
		toolChoice: 'required', tools: { take: tool({ inputSchema: point }) } });
	point.parse(answer.toolCalls[0].input);
});
await run('ai-sdk', 'schema', async () => {
	const answer = await generateText({ model: provider(model), maxRetries: 0, maxOutputTokens: tokens, messages,
		output: Output.object({ schema: jsonSchema(z.toJSONSchema(point)) }) });
	point.parse(answer.output);
});
