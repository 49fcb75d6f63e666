package interop

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A scripted model is a checkpoint whose next token depends on the last one alone, so that what it says is known. Its
// chat template writes out the conversation like any other, then ends the prompt with a token that chooses the
// script's next step: by the number of messages with calls so far.

// step is what the model says in one response.
type step struct {
	think, text string
	calls       []call
}

// call is a tool call.
type call struct {
	name string
	args map[string]any
}

// callFormat is how a family of models writes calls, and what its template accepts.
type callFormat struct {
	name, parser string
	history      string // part of the template: the calls of a message
	write        func(call) string
	rules        string // part of the template: refuses what it does not accept
	thinks       bool   // the template has thinking, which can be turned off
}

// agentFormats are the formats that clients are tried with. The last one has the rules of the strictest published
// templates: system messages come first, users and the model take turns, and there is no thinking.
var agentFormats = []callFormat{hermesCalls, coderCalls, strictCalls}

var (
	hermesCalls = callFormat{
		name: "hermes", parser: "hermes", thinks: true,
		history: `{% for c in m.tool_calls %}<tool_call>
{"name": {{ c.function.name | tojson }}, "arguments": {{ c.function.arguments | tojson }}}
</tool_call>
{% endfor %}`,
		write: func(c call) string {
			return fmt.Sprintf("<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>\n", c.name, jsonText(c.args))
		},
	}
	coderCalls = callFormat{
		name: "coder", parser: "qwen3-coder", thinks: true,
		history: `{% for c in m.tool_calls %}<tool_call>
<function={{ c.function.name }}>
{% for name, value in c.function.arguments | items %}<parameter={{ name }}>
{{ value if value is string else value | tojson }}
</parameter>
{% endfor %}</function>
</tool_call>
{% endfor %}`,
		write: writeCoderCall,
	}
	strictCalls = callFormat{
		name: "strict", parser: "hermes", history: hermesCalls.history, write: hermesCalls.write,
		rules: `{% set last = namespace(role='assistant') %}{% for m in messages %}
{% if m.content is not string %}{{ raise_exception('content has to be a string') }}{% endif %}
{% if m.role == 'system' %}
{% if not loop.first %}{{ raise_exception('the system message has to be the first') }}{% endif %}
{% elif m.role == 'user' or m.role == 'assistant' %}
{% if m.role == last.role or last.role == 'tool' and m.role == 'user' %}
{{ raise_exception('roles have to alternate') }}{% endif %}
{% endif %}{% if m.role != 'system' %}{% set last.role = m.role %}{% endif %}
{% endfor %}`,
	}
)

func writeCoderCall(c call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<tool_call>\n<function=%s>\n", c.name)
	for _, name := range slices.Sorted(maps.Keys(c.args)) {
		value, ok := c.args[name].(string)
		if !ok {
			value = jsonText(c.args[name])
		}
		fmt.Fprintf(&b, "<parameter=%s>\n%s\n</parameter>\n", name, value)
	}
	return b.String() + "</function>\n</tool_call>\n"
}

// scriptTemplate is the chat template. RULES and CALLS are a format's, STEPS is the last step, and formats that think
// have [scriptPast] and [scriptQuiet].
const scriptTemplate = `RULES{% set now = namespace(step=0) %}{% if tools %}<|im_start|>system
# Tools
{% for t in tools %}{{ t | tojson }}
{% endfor %}<|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
PAST{{ m.content }}{% if m.tool_calls %}{% if now.step < STEPS %}{% set now.step = now.step + 1 %}{% endif %}
CALLS{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if not tools %}<|aside|>QUIET{% else %}<|step-{{ now.step }}|>{% endif %}{% endif %}`

// scriptPast is the thinking of a message.
const scriptPast = `{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}`

// scriptQuiet is how the prompt ends without thinking.
const scriptQuiet = `{% elif enable_thinking is defined and not enable_thinking %}<think>

</think>

<|quiet-{{ now.step }}|>`

const (
	scriptContext = 128 << 10
	scriptWidth   = 512
	// scriptLogit is the logit of the next token. Those of others are random, with a standard deviation of 60/sqrt(512) =
	// 2.7 for a token that follows one other, and sqrt(n) times that if it follows n others, such as the end.
	scriptLogit = 60
	// beyond is the response after the last step: the client made more requests than the script has steps for.
	beyond = "The script has no such step."
)

// scripted writes a scripted model and returns its folder. aside is the response to requests without tools: clients ask
// for titles and summaries.
func scripted(t *testing.T, f callFormat, steps []step, aside string) string {
	t.Helper()
	s := newScriptWriter(t)
	s.choose("<|aside|>")
	s.say(aside)
	for i, now := range append(slices.Clone(steps), step{text: beyond}) {
		s.choose(stepToken(i))
		if now.think != "" && f.thinks {
			s.say("<think>\n" + now.think + "\n</think>\n\n")
		}
		quiet, body := s.special(quietToken(i)), now.text
		for _, c := range now.calls {
			body += "\n" + f.write(c)
		}
		s.next[quiet] = s.say(body)
	}
	past, quiet := scriptPast, scriptQuiet
	if !f.thinks {
		past, quiet = "", ""
	}
	return s.write(strings.NewReplacer("RULES", f.rules, "PAST", past, "CALLS", f.history, "QUIET", quiet,
		"STEPS", number10(len(steps))).Replace(scriptTemplate))
}

func stepToken(i int) string  { return fmt.Sprintf("<|step-%d|>", i) }
func quietToken(i int) string { return fmt.Sprintf("<|quiet-%d|>", i) }

// scriptWriter collects tokens and which one follows which.
type scriptWriter struct {
	t         *testing.T
	tokenizer map[string]any
	vocab     map[string]any
	next      map[int]int
	size      int
	last      int // the token that the next one follows
	first     int // of the last text
}

const scriptEnd = 1023 // <|end_of_text|> of the checkpoint demo, whose vocabulary is extended

func newScriptWriter(t *testing.T) *scriptWriter {
	t.Helper()
	s := &scriptWriter{t: t, next: map[int]int{}, size: scriptEnd + 1}
	s.tokenizer = readReal[map[string]any](t, "models", "demo", "tokenizer.json")
	s.vocab = s.tokenizer["model"].(map[string]any)["vocab"].(map[string]any)
	// Ids of added tokens hold only if the vocabulary has them too: otherwise they follow it.
	for _, token := range s.tokenizer["added_tokens"].([]any) {
		added := token.(map[string]any)
		s.vocab[added["content"].(string)] = added["id"]
	}
	s.special("<|im_start|>")
	s.special("<|im_end|>")
	return s
}

// special adds a special token.
func (s *scriptWriter) special(text string) int {
	id := s.size
	s.size++
	s.vocab[text] = id
	added := s.tokenizer["added_tokens"].([]any)
	s.tokenizer["added_tokens"] = append(added, map[string]any{"id": id, "content": text, "special": true,
		"single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
	return id
}

// choose starts a step after a special token, which the template ends the prompt with.
func (s *scriptWriter) choose(text string) { s.last = s.special(text) }

// say adds the tokens of a text and returns the first: a few bytes each, not always whole characters. The last one ends
// the response, until more is said. A token is in the vocabulary once and has one successor, so each one is as long as
// it takes to be new.
func (s *scriptWriter) say(text string) int {
	s.first = s.size
	for text != "" {
		n := min(5, len(text))
		for n < len(text) && s.vocab[byteLevel(text[:n])] != nil {
			n++
		}
		if rest := text[n:]; s.vocab[byteLevel(rest)] != nil || len(rest) < 5 {
			n = len(text)
		}
		piece := byteLevel(text[:n])
		if s.vocab[piece] != nil {
			s.t.Fatalf("the text ends with %q, which is a token already", text)
		}
		s.vocab[piece] = s.size
		s.next[s.last], s.last = s.size, s.size
		s.size++
		text = text[n:]
	}
	s.next[s.last] = scriptEnd
	return s.first
}

// byteLevel returns the spelling of bytes in a byte-level vocabulary: those that are not printable are shifted.
func byteLevel(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c <= 0x20:
			b.WriteRune(0x100 + rune(c))
		case c >= 0x7f && c <= 0xa0:
			b.WriteRune(0x121 + rune(c) - 0x7f)
		case c == 0xad:
			b.WriteRune(0x143)
		default:
			b.WriteRune(rune(c))
		}
	}
	return b.String()
}

// write writes the checkpoint: a Llama with one layer that adds nothing, and an output head that has each token's
// embedding in the row of its successor.
func (s *scriptWriter) write(template string) string {
	s.t.Helper()
	dir := s.t.TempDir()
	end := "<|end_of_text|>"
	config := readReal[map[string]any](s.t, "models", "demo", "config.json")
	maps.Copy(config, map[string]any{"hidden_size": scriptWidth, "intermediate_size": 32, "num_hidden_layers": 1,
		"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 32, "vocab_size": s.size,
		"tie_word_embeddings": false, "torch_dtype": "float32", "max_position_embeddings": scriptContext})
	for name, v := range map[string]any{
		"config.json":            config,
		"tokenizer.json":         s.tokenizer,
		"generation_config.json": map[string]any{"bos_token_id": scriptEnd - 1, "eos_token_id": scriptEnd},
		"tokenizer_config.json": map[string]any{"chat_template": template, "eos_token": end,
			"model_max_length": scriptContext, "tokenizer_class": "PreTrainedTokenizerFast"},
	} {
		writeFile(s.t, filepath.Join(dir, name), jsonText(v))
	}
	writeFile(s.t, filepath.Join(dir, "model.safetensors"), string(s.weights()))
	return dir
}

// weights returns a safetensors file.
func (s *scriptWriter) weights() []byte {
	const inner, head = 32, 32
	embed, output := make([]float32, s.size*scriptWidth), make([]float32, s.size*scriptWidth)
	random := rand.New(rand.NewPCG(1, 2))
	for row := range slices.Chunk(embed, scriptWidth) {
		var squares float64
		for i := range row {
			row[i] = float32(random.NormFloat64())
			squares += float64(row[i] * row[i])
		}
		for i := range row {
			row[i] /= float32(math.Sqrt(squares / scriptWidth))
		}
	}
	for from, to := range s.next {
		for i := range scriptWidth {
			output[to*scriptWidth+i] += embed[from*scriptWidth+i] * scriptLogit / scriptWidth
		}
	}
	ones := slices.Repeat([]float32{1}, scriptWidth)
	type tensor struct {
		name   string
		shape  []int
		values []float32
	}
	const layer = "model.layers.0."
	list := []tensor{
		{"model.embed_tokens.weight", []int{s.size, scriptWidth}, embed},
		{"lm_head.weight", []int{s.size, scriptWidth}, output},
		{"model.norm.weight", []int{scriptWidth}, ones},
		{layer + "input_layernorm.weight", []int{scriptWidth}, ones},
		{layer + "post_attention_layernorm.weight", []int{scriptWidth}, ones},
	}
	for name, shape := range map[string][]int{
		"self_attn.q_proj": {head, scriptWidth}, "self_attn.k_proj": {head, scriptWidth},
		"self_attn.v_proj": {head, scriptWidth}, "self_attn.o_proj": {scriptWidth, head},
		"mlp.gate_proj": {inner, scriptWidth}, "mlp.up_proj": {inner, scriptWidth}, "mlp.down_proj": {scriptWidth, inner},
	} {
		list = append(list, tensor{layer + name + ".weight", shape, make([]float32, shape[0]*shape[1])})
	}
	header, data := map[string]any{}, []byte{}
	for _, v := range list {
		start := len(data)
		data, _ = binary.Append(data, binary.LittleEndian, v.values) // cannot fail: the type is of fixed size
		header[v.name] = map[string]any{"dtype": "F32", "shape": v.shape, "data_offsets": []int{start, len(data)}}
	}
	text := jsonText(header)
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), []byte(text), data)
}
