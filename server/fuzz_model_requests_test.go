package server_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// asker makes requests of all APIs: valid ones, and ones with a part that is odd.
type asker struct{ *runtest.Choices }

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (a asker) text() string {
	if a.Yes(8) {
		return string(a.Bytes())
	}
	return a.Pick("Once upon a time", "", " ", "x", "a\n\nb", "<think>hm</think>so",
		"<tool_call>{\"name\":\"f\"}</tool_call>",
		"日本語 é\u0301 😀", "\x00", "\ufffd", "<|endoftext|>", "[img-0]", "{{ messages }}", strings.Repeat("ab ", 40),
		strings.Repeat("once upon ", 150), "</s><s>", "\u2028", "{\"x\":1}")
}

// odd is a value of a wrong type or size.
func (a asker) odd() string {
	return a.Pick("null", "true", "-1", "0", "1e308", "9223372036854775808", `""`, `"x"`, "[]", "{}", "[null]", "[[]]",
		`{"a":{}}`,
		`["x",7]`, "1.5", "-0", `"\u0000"`, "2147483648")
}

// or is a value, or rarely an odd one.
func (a asker) or(value string) string {
	if a.Yes(24) {
		return a.odd()
	}
	return value
}

// fields is an object of some of the given members: name, value, ...
func (a asker) fields(always []string, may ...func() (name, value string)) string {
	list := always
	for range a.N(7) {
		name, value := may[a.N(len(may))]()
		list = append(list, quoted(name)+":"+a.or(value))
	}
	return "{" + strings.Join(list, ",") + "}"
}

func member(name string, value func() string) func() (string, string) {
	return func() (string, string) { return name, value() }
}

func (a asker) schema() string {
	switch a.N(9) {
	case 0:
		return `{"type":"object","properties":{"x":` + a.Pick(`{"type":"integer"}`, `{"enum":["a","b"]}`, `{"const":null}`) +
			`},"required":["x"],"additionalProperties":false}`
	case 1:
		return `{"type":"array","items":{"type":"` + a.Pick("string", "number", "boolean", "null") + `"},"maxItems":2}`
	case 2:
		return `{"type":"string","pattern":` + quoted(a.Pick("^a+$", "(a*)*b", "[", `\\d{2,900}`, "^(?=x)y")) + `}`
	case 3:
		return `{"$ref":"` + a.Pick("#", "#/$defs/a", "http://x.example/", "#/$defs/none") +
			`","$defs":{"a":{"anyOf":[{"type":` +
			`"null"},{"$ref":"#/$defs/a"}]}}}`
	case 4:
		return `{"anyOf":[` + a.Joined(3, ",", func() string { return `{"const":` + quoted(a.text()) + `}` }) + `]}`
	case 5:
		return `{"type":"` + a.Pick("string", "integer", "object", "x") + `","minLength":` + a.Pick("0", "3", "99999999999") +
			`,"format":"` + a.Pick("date", "uuid", "x") + `"}`
	}
	return a.Pick(`{}`, `true`, `false`, `{"type":"object"}`, `"json"`, `{"not":{}}`, `{"type":["string","null"]}`)
}

func (a asker) call() string {
	arguments := a.Pick(`{"x":1}`, `{}`, `[]`, `7`, `{"x":`+quoted(a.text())+`}`)
	return a.Pick(`{"function":{"name":"f","arguments":`+arguments+`}}`,
		`{"id":"1","type":"function","function":{"name":"f","arguments":`+quoted(arguments)+`}}`)
}

func (a asker) tools() string {
	return "[" + a.Joined(3, ",", func() string {
		name, schema := a.Pick("f", "g", "", "a b", strings.Repeat("n", 80)), a.schema()
		return a.Pick(`{"type":"function","function":{"name":`+quoted(name)+`,"description":"d","parameters":`+schema+`}}`,
			`{"name":`+quoted(name)+`,"input_schema":`+schema+`}`, `{"type":"function","name":`+quoted(name)+`,"parameters":`+
				schema+`}`)
	}) + "]"
}

// onePixel is a PNG.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func (a asker) part() string {
	text := quoted(a.text())
	return a.Pick(`{"type":"text","text":`+text+`}`, `{"type":"input_text","text":`+text+`}`,
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,`+onePixel+`"}}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+onePixel+`"}}`,
		`{"type":"input_image","image_url":"data:image/png;base64,`+onePixel[:40]+`"}`,
		`{"type":"thinking","thinking":`+text+`,"signature":""}`, `{"type":"tool_use","id":"1","name":"f","input":{"x":1}}`,
		`{"type":"tool_result","tool_use_id":"1","content":`+text+`}`, `{"type":"refusal","refusal":`+text+`}`,
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":`+text+`}}`, `{"type":"x"}`)
}

func (a asker) content() string {
	if a.Yes(3) {
		return "[" + a.Joined(4, ",", a.part) + "]"
	}
	return quoted(a.text())
}

func (a asker) message() string {
	role := a.Pick("user", "assistant", "system", "tool", "developer", "user", "x", "")
	return a.fields([]string{`"role":` + quoted(role), `"content":` + a.or(a.content())},
		member("tool_calls", func() string { return "[" + a.Joined(2, ",", a.call) + "]" }),
		member("tool_call_id", func() string { return `"1"` }), member("tool_name", func() string { return `"f"` }),
		member("name", func() string { return `"f"` }), member("thinking", func() string { return quoted(a.text()) }),
		member("reasoning_content", func() string { return quoted(a.text()) }),
		member("images", func() string { return `["` + onePixel + `"]` }))
}

func (a asker) messages() string {
	list := []string{`{"role":"user","content":` + quoted(a.text()) + `}`}
	for range a.N(5) {
		list = append(list, a.message())
	}
	return "[" + strings.Join(list, ",") + "]"
}

func (a asker) number() string {
	return a.Pick("0", "1", "0.5", "2", "-1", "0.0001", "100", "1e-40", "3")
}

// sampling are the parameters of Ollama's options, and of other APIs' bodies, by name.
func (a asker) sampling() (name, value string) {
	name = a.Pick("temperature", "top_k", "top_p", "min_p", "typical_p", "repeat_penalty", "presence_penalty",
		"frequency_penalty", "repeat_last_n", "seed", "num_ctx", "mirostat", "logit_bias", "stop", "n", "best_of",
		"xtc_probability",
		"dry_multiplier", "echo", "num_keep", "draft_num", "ignore_eos")
	switch name {
	case "logit_bias":
		return name, a.Pick(`{"1":100}`, `{"1023":-100}`, `{"x":1}`, `{"99999999":1}`, `{"0":1e308}`, `{}`)
	case "stop":
		return name, a.Pick(`"a"`, `["a","on"]`, `[""]`, `[]`, `["`+strings.Repeat("s", 200)+`"]`)
	case "num_ctx":
		return name, a.Pick("20", "1", "0", "-1", "512", "100000")
	case "n", "best_of":
		return name, a.Pick("1", "2", "3", "0")
	case "echo", "ignore_eos":
		return name, a.Pick("true", "false")
	}
	return name, a.number()
}

func (a asker) options() string {
	list := []string{`"num_predict":` + a.Pick("4", "0", "1", "16", "-1", "-2")}
	for range a.N(4) {
		name, value := a.sampling()
		list = append(list, quoted(name)+":"+a.or(value))
	}
	return "{" + strings.Join(list, ",") + "}"
}

func (a asker) format() string {
	return a.Pick(`{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":`+a.schema()+`}}`,
		`{"type":"json_object"}`, `{"type":"text"}`, `{"type":"json_schema","name":"a","schema":`+a.schema()+`}`,
		`{"type":"regex","regex":"[ab]+"}`, `{"type":"grammar","grammar":"root ::= \"a\" root?"}`)
}

func (a asker) think() string {
	return a.Pick("true", "false", `"high"`, `"none"`, `{"type":"enabled","budget_tokens":1024}`, `{"effort":"low"}`,
		`"x"`)
}

// routes are the ones with a model behind them, with the members that a body always has.
var routes = []struct {
	path   string
	always func(a asker) []string
}{
	{"/api/chat", func(a asker) []string { return []string{`"messages":` + a.messages(), `"options":` + a.options()} }},
	{"/api/generate", func(a asker) []string {
		return []string{`"prompt":` + quoted(a.text()), `"options":` +
			a.options()}
	}},
	{"/v1/chat/completions", func(a asker) []string {
		return []string{`"messages":` + a.messages(),
			a.most("max_tokens")}
	}},
	{"/v1/completions", func(a asker) []string { return []string{`"prompt":` + a.inputs(), a.most("max_tokens")} }},
	{"/v1/responses", func(a asker) []string {
		return []string{`"input":` + a.Pick(quoted(a.text()), a.messages()), a.most("max_output_tokens")}
	}},
	{"/v1/messages", func(a asker) []string { return []string{`"messages":` + a.messages(), a.most("max_tokens")} }},
	{"/v1/messages/count_tokens", func(a asker) []string { return []string{`"messages":` + a.messages()} }},
	{"/v1/responses/input_tokens", func(a asker) []string { return []string{`"input":` + quoted(a.text())} }},
	{"/api/embed", func(a asker) []string { return []string{`"input":` + a.inputs()} }},
	{"/api/embeddings", func(a asker) []string { return []string{`"prompt":` + quoted(a.text())} }},
	{"/v1/embeddings", func(a asker) []string { return []string{`"input":` + a.inputs()} }},
	{"/v1/tokenize", func(a asker) []string { return []string{`"prompt":` + quoted(a.text())} }},
	{"/v1/detokenize", func(a asker) []string { return []string{`"tokens":` + a.ids()} }},
	{"/v1/schema/check", func(a asker) []string { return []string{`"schema":` + a.schema()} }},
}

func (a asker) most(name string) string {
	return quoted(name) + ":" + a.Pick("4", "1", "0", "16", "1000000", "-1")
}

func (a asker) ids() string {
	return "[" + a.Joined(6, ",", func() string {
		return a.Pick("1", "1022", "1023", "0", "512", "1024", "-1",
			"2147483647")
	}) + "]"
}

func (a asker) inputs() string {
	return a.Pick(quoted(a.text()), `[`+quoted(a.text())+`,`+quoted(a.text())+`]`, a.ids(), `[`+a.ids()+`]`, `[]`)
}

// request is a path and a body for one of the models.
func (a asker) request(models ...string) (path, body string) {
	route := routes[a.N(len(routes))]
	always := append([]string{`"model":` + quoted(a.Pick(models...))}, route.always(a)...)
	flag := func() string { return a.Pick("true", "false") }
	return route.path, a.fields(always, a.sampling, a.sampling, member("stream", flag), member("tools", a.tools),
		member("tool_choice", func() string {
			return a.Pick(`"auto"`, `"required"`, `"none"`, `{"type":"function","function":{"name":"f"}}`, `{"type":"any"}`,
				`{"type":"tool","name":"g"}`)
		}),
		member("format", func() string { return a.Pick(a.schema(), `"json"`, a.format()) }),
		member("response_format", a.format), member("text", func() string { return `{"format":` + a.format() + `}` }),
		member("think", a.think), member("thinking", a.think), member("reasoning", a.think), member("reasoning_effort",
			a.think),
		member("logprobs", func() string { return a.Pick("true", "3", "false") }),
		member("top_logprobs", func() string { return a.Pick("2", "0", "20") }),
		member("system", func() string { return a.content() }), member("instructions",
			func() string { return quoted(a.text()) }),
		member("suffix", func() string { return quoted(a.text()) }), member("raw", flag),
		member("template", func() string {
			return quoted(a.Pick("{{ .Prompt }}", "{{ range .Messages }}{{ .Content }}{{ end }}", "{{", "{{ .Nope }}", a.text()))
		}),
		member("context", a.ids), member("images", func() string { return `["` + onePixel + `"]` }),
		member("stop_sequences", func() string { return `["a",` + quoted(a.text()) + `]` }),
		member("keep_alive", func() string { return a.Pick(`"5m"`, "-1", "0", `"x"`) }),
		member("dimensions", func() string { return a.Pick("1", "64", "4096") }),
		member("encoding_format", func() string { return a.Pick(`"base64"`, `"float"`, `"x"`) }),
		member("chat_template_kwargs", func() string { return `{"enable_thinking":` + flag() + `,"x":` + a.odd() + `}` }),
		member("stream_options", func() string { return `{"include_usage":true}` }),
		member("store", flag), member("background", func() string { return "false" }), member("truncate", flag),
		member("guided_regex", func() string { return `"[0-9]{3}"` }),
		member("metadata", func() string { return fmt.Sprintf(`{"k":%s}`, quoted(a.text())) }))
}
