package parse

import (
	"regexp"
	"strings"
)

// marks identify a format by strings in its chat templates. The first match wins, so more specific marks come first.
var marks = []struct {
	format string
	all    []string
}{
	{"harmony", []string{harmonyStart, harmonyChannel, harmonyMessage}},
	{"gemma4", []string{"<|tool_call>call:"}},
	{"deepseek4", []string{"<｜DSML｜tool_calls"}},
	{"deepseek3.2", []string{"<｜DSML｜"}},
	{"minimax", []string{"<minimax:tool_call>"}},
	{"dots", []string{"<dots_function_call>"}},
	{"seed-oss", []string{"<seed:tool_call>"}},
	{"solar-open", []string{solarName, solarArgs}},
	{"olmo3", []string{"<function_calls>", "</function_calls>"}},
	{"deepseek3", []string{"<｜tool▁call▁begin｜>"}},
	{"glm-4.7", []string{"<arg_key>", "<arg_value>"}},
	{"cohere", []string{"<|START_ACTION|>"}},
	{"apertus", []string{"<|tools_prefix|>"}},
	{"mistral", []string{"[TOOL_CALLS]"}},
	{"nemotron", []string{"<TOOLCALL>"}},
	{"nemotron", []string{"<toolcall>"}},
	{"qwen3-coder", []string{"<tool_call>", "<function="}},
	{"ernie4.5", []string{"<tool_call>", "arguments", "<response>"}},
	{"hermes", []string{"<tool_call>", "arguments"}},
	{"hunyuan", []string{"<tool_calls>", "arguments"}},
	{"granite", []string{"<|tool_call|>"}},
	{"llama3", []string{"<|python_tag|>"}},
	{"llama3", []string{"<|start_header_id|>", "ipython", "tool_calls"}},
	{"llama3", []string{"<|start_header_id|>", "ipython", ".ToolCalls"}}, // a Go template
	{"llama3", []string{`Respond in the format {"name": function name, ` +
		`"parameters": dictionary of argument name and its value}`}},
}

// thinking lists the thinking tags of published templates.
var thinking = []Tags{
	thinkTags,
	{"<|channel>", "<channel|>"},
	{"[THINK]", "[/THINK]"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<|inner_prefix|>", "<|inner_suffix|>"},
	{"<seed:think>", "</seed:think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"},
	{"\u25c1think\u25b7", "\u25c1/think\u25b7"},
}

// thinkingSwitch matches the variables by which chat templates turn thinking on and off.
var thinkingSwitch = regexp.MustCompile(`\benable_thinking\b|\{%[^%{}]*[\s(]thinking\b|\.(?:Think|IsThinkSet)\b`)

// Detect returns the format of a model's tool calls and its thinking tags, as found in the text of its chat template.
// A template that shows no tags but can turn thinking on has those of its format, or the usual ones; otherwise the tags
// are empty. A model with thinking but without tool calls has the format "thinking"; without either, name is "".
func Detect(template string) (name string, think Tags) {
	name, think = shown(template)
	if think == (Tags{}) && thinkingSwitch.MatchString(template) {
		if think = Thinks(name); think == (Tags{}) {
			think = thinkTags
		}
		if name == "" {
			name = "thinking"
		}
	}
	return name, think
}

// shown returns the format and the thinking tags that a template contains.
func shown(template string) (name string, think Tags) {
	for _, t := range thinking {
		if strings.Contains(template, t.Close) {
			think = t
			break
		}
	}
	for _, m := range marks {
		if containsAll(template, m.all) {
			if f := formats[m.format]; f.thinks && strings.Contains(template, f.think.Open) {
				think = f.think
			}
			return m.format, think
		}
	}
	if think != (Tags{}) {
		return "thinking", think
	}
	return "", think
}

func containsAll(s string, all []string) bool {
	for _, part := range all {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// Thinks returns the thinking tags of a format.
func Thinks(name string) Tags {
	if f, ok := lookup(name); ok {
		return f.think
	}
	return Tags{}
}

// Opens reports whether a prompt ends inside thinking: only white space and the format's optional word follow the last
// opening tag.
func Opens(name string, think Tags, prompt string) bool {
	word := ""
	if f, ok := lookup(name); ok {
		if word = strings.TrimRight(f.name, spaces); think == (Tags{}) {
			think = f.think
		}
	}
	if think.Open == "" {
		return false
	}
	at := strings.LastIndex(prompt, think.Open)
	if at < 0 {
		return false
	}
	rest := strings.Trim(prompt[at+len(think.Open):], spaces)
	return rest == "" || rest == word
}
