package parse

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat/chattest"
	"github.com/ingotml/ingot/chat/parse/calls"
)

func TestDetect(t *testing.T) {
	for _, c := range []struct{ template, name, close string }{
		{"", "", ""},
		{"{{ messages[0].content }}", "", ""},
		{"<think>{{ x }}</think>", "thinking", "</think>"},
		{`<tool_call>\n{"name": {{ n }}, "arguments": {{ a }}}\n</tool_call>`, "hermes", ""},
		{`<think></think><tool_call><function={{ n }}><parameter={{ k }}>`, "qwen3-coder", "</think>"},
		{`<tool_call>{{ n }}<arg_key>{{ k }}</arg_key><arg_value>`, "glm-4.7", ""},
		{`'<|tool_call>call:' + name + '{' <|channel>thought\n<channel|>`, "gemma4", "<channel|>"},
		{`<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜></think>`, "deepseek3", "</think>"},
		{`[AVAILABLE_TOOLS][TOOL_CALLS]`, "mistral", ""},
		{`[THINK][/THINK][TOOL_CALLS]`, "mistral", "[/THINK]"},
		{`{{- "<|python_tag|>" + tool_call.name + ".call(" }}`, "llama3", ""},
		{`<|start_header_id|>{{ range .ToolCalls }}{"name": "{{ .Function.Name }}"}{{ end }}<|start_header_id|>ipython`,
			"llama3", ""},
		{`{{ range .ToolCalls }}<tool_call>{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}`,
			"hermes", ""},
		{`<|end_of_role|><|tool_call|>' + message['content']`, "granite", ""},
		{`<｜DSML｜function_calls></think>`, "deepseek3.2", "</think>"},
		{`<｜DSML｜tool_calls></think>`, "deepseek4", "</think>"},
		{`{%- set toolcall_begin_token = '<minimax:tool_call>' -%}<invoke name="`, "minimax", ""},
		{`<TOOLCALL>`, "nemotron", ""},
		{`<|START_THINKING|><|END_THINKING|><|START_ACTION|>`, "cohere", "<|END_THINKING|>"},
		{`'<|inner_prefix|>' <|inner_suffix|>{{ '<|tools_prefix|>[' }}`, "apertus", "<|inner_suffix|>"},
		{`{{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking + "<|end|>" }}`, "harmony", "<|end|>"},
		{`<|user|>{{ x }}<|end|>`, "", ""},
		{`<seed:think></seed:think>`, "thinking", "</seed:think>"},
		{`'<seed:tool_call>' '<seed:think>' '</seed:think>' <function=example_function_name>\n<parameter=k>`, "seed-oss",
			"</seed:think>"},
		{`<functions></functions> '<function_calls>' + name + '(' + ')' + '</function_calls>'`, "olmo3", ""},
		{`<tool_calls>[{"name": "f", "arguments": {}}]</tool_calls> '<answer>' </think>`, "hunyuan", "</think>"},
		{`<|think|><|end|><|begin|>assistant<|tool_call:begin|>0<|tool_call:name|>f<|tool_call:args|>`, "solar-open",
			"<|end|>"},
		{`<|end|><|tool_call:name|><|tool_call:args|>`, "solar-open", ""},
		{`<tool_call>{"name": f, "arguments": a}</tool_call><response></response></think>`, "ernie4.5", "</think>"},
		{`<dots_function_call><invoke name=`, "dots", ""},
		{`{% if enable_thinking %}Think.{% endif %}`, "thinking", "</think>"},
		{`{%- if not thinking is defined %}`, "thinking", "</think>"},
		{`{{ if and .IsThinkSet .Think }}Think.{{ end }}`, "thinking", "</think>"},
		{`{% if enable_thinking %}Enable.{% endif %}<|start_header_id|>ipython tool_calls`, "llama3", "</think>"},
		{`{% if enable_thinking %}{{ '[TOOL_CALLS]' }}`, "mistral", "[/THINK]"},
		{`{% if x %}If thinking helps, do it.{% endif %}`, "", ""},
	} {
		name, think := Detect(c.template)
		if name != c.name || think.Close != c.close {
			t.Errorf("%q: %q, %v", c.template, name, think)
		}
		if name != "" {
			mustNew(t, name, Options{Think: think})
		}
	}
}

// Detect finds the formats of published templates, each named by a part of its file's name. Only some are committed.
func TestDetectPublished(t *testing.T) {
	committed := map[string]string{
		"deepseek-r1_8b": "deepseek3", "deepseek-v3.1": "deepseek3", "granite4_": "hermes", "granite3.3_": "granite",
		"granite3.2-vision": "granite", "qwen2.5-coder": "hermes", "qwen3-next": "hermes", "qwq_32b": "hermes",
		"gemma4": "gemma4", "tinyllama": "", "phi3_": "",
	}
	others := map[string]string{
		"deepseek-v2.5": "deepseek3", "llama3.1_": "llama3", "llama4": "llama3", "cogito_3b": "llama3", "rnj-1": "hermes",
		"laguna": "glm-4.7", "nemotron35": "qwen3-coder", "qwen38": "qwen3-coder", "command-r7b": "cohere",
		"llama2_": "", "gemma2": "",
	}
	for _, set := range chattest.Sets(t) {
		check := func(part, want string, needed bool) {
			n := 0
			for name, source := range set.Templates {
				if !strings.Contains(name, part) {
					continue
				}
				n++
				if got, _ := Detect(source); got != want {
					t.Errorf("%s, %s: %q, want %q", set.Name, name, got, want)
				}
			}
			if needed && n == 0 {
				t.Errorf("%s: no template %s", set.Name, part)
			}
		}
		for part, want := range committed {
			check(part, want, true)
		}
		for part, want := range others {
			check(part, want, !set.Committed)
		}
	}
}

func TestOpens(t *testing.T) {
	for _, c := range []struct {
		name, prompt string
		want         bool
	}{
		{"qwen3.5", "<|im_start|>assistant\n<think>\n", true},
		{"qwen3.5", "<|im_start|>assistant\n<think>\n\n</think>\n\n", false},
		{"qwen3.5", "<think>x</think><|im_start|>assistant\n", false},
		{"gemma4", "<|turn>model\n<|channel>thought\n", true},
		{"gemma4", "<|turn>model\n", false},
		{"llama3", "<think>", false},
	} {
		if got := Opens(c.name, Tags{}, c.prompt); got != c.want {
			t.Errorf("%s, %q: %v", c.name, c.prompt, got)
		}
	}
	if !Opens("llama3", thinkTags, "<think>") {
		t.Error("Opens ignores the template's own tags")
	}
}

func TestNew(t *testing.T) {
	_, err := New("nosuch", Options{})
	if err == nil || !strings.Contains(err.Error(), `unknown parser "nosuch" (known: apertus, cohere, deepseek3, `) {
		t.Errorf("error %v", err)
	}
	for alias, name := range aliases {
		if !Known(alias) || formats[name] == nil || formats[alias] != nil {
			t.Errorf("alias %s of %s", alias, name)
		}
	}
	for name, f := range formats {
		tools, thinking := Abilities(name)
		if tools != (len(f.forms) > 0 || f.parser != nil) || thinking != (Thinks(name).Close != "") {
			t.Errorf("%s: %v, %v", name, tools, thinking)
		}
	}
	if tools, thinking := Abilities("nosuch"); tools || thinking || Known("nosuch") {
		t.Error("an unknown format has abilities")
	}
}

// The parser reads a call as each published template writes it.
func TestPublishedCalls(t *testing.T) {
	for _, set := range chattest.Sets(t) {
		t.Run(set.Name, func(t *testing.T) {
			least := 10
			if set.Committed {
				least = 6
			}
			if n := checkCalls(t, set); n < least {
				t.Errorf("only %d templates write a call", n)
			}
		})
	}
}

// checkCalls returns how many templates of a set write a call.
func checkCalls(t *testing.T, set chattest.Set) int {
	t.Helper()
	type function struct {
		Name      string
		Arguments any
	}
	type message struct {
		ToolCalls []struct{ Function function } `json:"tool_calls"`
	}
	var context struct {
		Messages []message
		Tools    []struct{ Function calls.Tool }
	}
	if err := json.Unmarshal(set.Contexts["tools"], &context); err != nil {
		t.Fatal(err)
	}
	var o Options
	for _, tl := range context.Tools {
		o.Tools = append(o.Tools, tl.Function)
	}
	var want function
	for _, m := range context.Messages {
		for _, c := range m.ToolCalls {
			want = c.Function
		}
	}
	begin := regexp.MustCompile(`(?s)Paris\?.*?(<tool_call>|<\|tool_call>|<\|python_start\|>|\[?\{"name")`)
	end := regexp.MustCompile(`<\|im_end\|>|<\|eot_id\|>|<\|eot\|>|<\|end_of_text\|>|</assistant>|<\|tool_response>`)
	n := 0
	for file, renders := range set.Renders {
		ok := renders["tools"].OK
		if ok == nil {
			continue
		}
		at := begin.FindStringSubmatchIndex(*ok)
		if at == nil {
			continue
		}
		response := (*ok)[at[2]:]
		response = response[:end.FindStringIndex(response)[0]]
		format, think := Detect(set.Templates[file])
		o.Think = think
		events, err := feed(t, mustNew(t, format, o), bytesOf(response)...)
		var args any
		if len(events) > 0 {
			_ = json.Unmarshal(events[0].Call.Arguments, &args)
		}
		if err != nil || len(events) != 1 && strings.TrimSpace(events[1].Text) != "" || events[0].Call.Name != want.Name ||
			!reflect.DeepEqual(args, want.Arguments) {
			t.Errorf("%s as %s: %q gives %s, %v", file, format, response, describe(events), err)
		}
		n++
	}
	return n
}
