// Writes testdata/real/MODEL.json: what llama.cpp computes with a published GGUF file, for `make test-real`.
//
// texts: 400 texts with their tokens, special tokens in the text recognized, none added around it. prompts: their tokens,
// the greedy continuation, and at each step the tokens whose logits are less than NEAR below the largest.
//
// The npm package node-llama-cpp has llama.cpp compiled:
//
//   npm install --prefix .cache/node-llama-cpp --ignore-scripts node-llama-cpp@3.22.1
//   NODE_PATH=.cache/node-llama-cpp/node_modules node testdata/gen/real/peer.mjs MODEL "$(testdata/real/fetch.sh MODEL)"
import fs from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"
import { pathToFileURL } from "node:url"

const STEPS = 64
const NEAR = 0.5
const here = path.dirname(new URL(import.meta.url).pathname)
const [name, file] = process.argv.slice(2)
if (!file) throw new Error("usage: peer.mjs MODEL FILE.gguf")
const folder = path.resolve(process.env.NODE_PATH, "node-llama-cpp")
const main = createRequire(folder + "/").resolve(folder + "/dist/index.js")
const { getLlama } = await import(pathToFileURL(main))
const { texts, prompts } = JSON.parse(fs.readFileSync(path.join(here, "texts.json"), "utf8"))

const llama = await getLlama({ gpu: false, build: "never", progressLogs: false })
const model = await llama.loadModel({ modelPath: file, useMmap: true })
const begin = model.tokens.shouldPrependBosToken ? [model.tokens.bos] : []

async function greedy(text) {
	const context = await model.createContext({ contextSize: 512, threads: 2 })
	const sequence = context.getSequence()
	const tokens = [...begin, ...model.tokenize(text, true)]
	const steps = [], near = []
	let next = tokens
	for (let i = 0; i < STEPS; i++) {
		const last = [next.at(-1), { generateNext: { probabilities: true, options: { temperature: 0 } } }]
		const rows = await sequence.controlledEvaluate([...next.slice(0, -1), last])
		const found = [...rows.at(-1).next.probabilities]
		const [top, most] = found[0]
		const close = found.slice(1).map(([token, p]) => [token, Math.log(most) - Math.log(p)]).filter(([, d]) => d < NEAR)
		steps.push(top)
		near.push(Object.fromEntries(close.map(([token, d]) => [token, Math.round(d * 1e4) / 1e4])))
		next = [top]
	}
	await context.dispose()
	return { text, tokens, greedy: steps, near }
}

const lines = (list) => "[\n" + list.map((x) => JSON.stringify(x)).join(",\n") + "\n]"
const answers = []
for (const text of prompts[name]) answers.push(await greedy(text))
const tokens = texts.map((text) => model.tokenize(text, true))
const release = llama.llamaCppRelease.release
fs.writeFileSync(path.join(here, "../../real", name + ".json"),
	`{\n"llama.cpp": ${JSON.stringify(release)},\n"prompts": ${lines(answers)},\n"texts": ${lines(tokens)}\n}\n`)
process.exit(0)
