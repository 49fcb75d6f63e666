package parse

import "errors"

// format is how a family of models writes thinking and calls.
type format struct {
	think            Tags
	anywhere         bool   // thinking may begin after text too; else only where the answer begins
	name             string // a word that may follow the opening tag
	callEndsThinking bool   // a call that begins inside thinking ends it: the closing tag was forgotten
	forms            []form
	bare             *form    // of a call that is the whole answer, without a tag
	control          []string // tags that are dropped wherever they stand
	noise            []string // texts that are dropped after a call
	writes           *writing // how a call is written; nil = nobody has said
}

// form is a way to write a call.
type form struct {
	open string // tag
	tag  string // closing tag; "" when the body shows where it ends
	end  func() ender
	// parse reads a body. When the text ended before the call did, complete is false, and the call must be whole all the same.
	parse func(t tools, body string, complete bool) ([]ToolCall, error)
	// untilEnd tells whether a call may end with the text.
	untilEnd func(body []byte) bool
}

// errNoCall says that a text which could have been a call is none.
var errNoCall = errors.New("no call")

var thinkTags = Tags{"<think>", "</think>"}

// toolCallForms are the forms in <tool_call>: a JSON object, or a function with parameters in tags, which may stand alone.
var toolCallForms = []form{
	{open: "<tool_call>", tag: "</tool_call>", end: func() ender { return &callEnd{} }, parse: parseToolCall},
	{open: "<function=", tag: "</function>", end: func() ender { return &tagEnd{tags: []string{"</function>"}} }, parse: parseBareFunction},
}

// formats are the known formats. Where ollama has a name for one, it is used.
var formats = map[string]*format{
	// Text as it is.
	"passthrough": {},
	// Only thinking.
	"thinking": {think: thinkTags},
	// Hermes 2 Pro and everything since that writes JSON in <tool_call>: Qwen 2.5, Granite 4, ...
	"hermes": {think: thinkTags, forms: toolCallForms, noise: []string{"</tool_call>"}, writes: &toolCallObjects},
	"qwen3":  {think: thinkTags, callEndsThinking: true, forms: toolCallForms, noise: []string{"</tool_call>"}, writes: &toolCallObjects},
	// <function=...> in <tool_call>; models of these families forget </think> before a call.
	"qwen3-coder": {think: thinkTags, callEndsThinking: true, forms: toolCallForms, noise: []string{"</tool_call>"}, writes: &toolCallFunctions},
	"qwen3.5":     {think: thinkTags, callEndsThinking: true, forms: toolCallForms, noise: []string{"</tool_call>"}, writes: &toolCallFunctions},
	"nemotron-3":  {think: thinkTags, callEndsThinking: true, forms: toolCallForms, noise: []string{"</tool_call>"}, writes: &toolCallFunctions},
	// JSON lists in <TOOLCALL>: Nemotron before 3. The small one writes the tag in lower case.
	"nemotron": {think: thinkTags, forms: []form{
		{open: "<TOOLCALL>", tag: "</TOOLCALL>", end: jsonTagEnd("</TOOLCALL>"), parse: parseJSON},
		{open: "<toolcall>", tag: "</toolcall>", end: jsonTagEnd("</toolcall>"), parse: parseJSON},
	}, writes: &writing{open: "<TOOLCALL>", begin: "[", next: ", ", end: "]</TOOLCALL>", call: objects("name", "arguments")}},
	// GLM-4.5 to 4.7, and others with their tags.
	"glm-4.7": {think: thinkTags, forms: []form{
		{open: "<tool_call>", tag: "</tool_call>", end: func() ender { return &tagEnd{tags: []string{"</tool_call>"}} }, parse: parseGLM},
	}, writes: &glmCalls},
	"gemma4": {
		think: Tags{"<|channel>", "<channel|>"}, anywhere: true, name: "thought\n",
		forms: []form{{open: "<|tool_call>", tag: "<tool_call|>", end: func() ender { return &gemmaEnd{} }, parse: parseGemma}},
		noise: []string{"<tool_call|>", "<|tool_response>"},
		// In JSON, which the model can be held to and which is read as well; what ends the call is its last brace.
		writes: &writing{open: "<|tool_call>", begin: "call:", next: "<tool_call|><|tool_call>call:", call: named("")},
	},
	// DeepSeek V3 and R1 with a fence of JSON, V3.1 without.
	"deepseek3": {
		think: thinkTags,
		forms: []form{{
			open: "<｜tool▁call▁begin｜>", tag: "<｜tool▁call▁end｜>",
			end: func() ender {
				return &tagEnd{tags: []string{"<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"}}
			},
			parse: parseDeepSeek,
		}},
		control: []string{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
		writes: &writing{
			open: "<｜tool▁calls▁begin｜>", begin: "<｜tool▁call▁begin｜>", next: "<｜tool▁call▁end｜><｜tool▁call▁begin｜>",
			end: "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", call: named("<｜tool▁sep｜>"),
		},
	},
	// DeepSeek V3.2: elements in a tag, whose parameters say whether they are texts. MiniMax M2 writes the same without marks.
	"deepseek3.2": {
		think: thinkTags, forms: []form{invokeForm("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "｜DSML｜")},
		writes: invokes("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "｜DSML｜"),
	},
	"minimax": {
		think: thinkTags, forms: []form{invokeForm("<minimax:tool_call>", "</minimax:tool_call>", "")},
		writes: invokes("<minimax:tool_call>", "</minimax:tool_call>", ""),
	},
	// [TOOL_CALLS] and a JSON list, or, since the tokenizer of version 11, a name and its arguments.
	"mistral": {
		think: Tags{"[THINK]", "[/THINK]"}, anywhere: true,
		forms:  []form{{open: "[TOOL_CALLS]", end: func() ender { return &mistralEnd{} }, parse: parseMistral}},
		writes: &writing{open: "[TOOL_CALLS]", begin: "[", next: ", ", end: "]", call: objects("name", "arguments")},
	},
	// Llama 3.1 and later, and models made of them: the answer is a JSON object or a list of such, or a list of calls as
	// Python writes them; or the python tag stands before an object or before Python. Llama 4 has tags around nothing.
	"llama3": {
		forms: []form{{
			open: "<|python_tag|>", end: func() ender { return &pythonEnd{} }, parse: parsePython,
			untilEnd: func(body []byte) bool { return firstByte(body) != '{' },
		}},
		bare:    &form{end: func() ender { return &jsonEnd{} }, parse: parseBare},
		control: []string{"<|python_start|>", "<|python_end|>"},
		noise:   []string{";", ",", "<|eom_id|>", "<|eot_id|>"},
		writes:  &writing{next: "; ", call: objects("name", "parameters")},
	},
	// Granite 3, and Phi-4-mini: a JSON list after a tag; Phi closes it.
	"granite": {
		think:  thinkTags,
		forms:  []form{{open: "<|tool_call|>", end: func() ender { return &jsonEnd{} }, parse: parseJSON}},
		noise:  []string{"<|/tool_call|>", "<|end_of_text|>"},
		writes: &writing{open: "<|tool_call|>", begin: "[", next: ", ", end: "]", call: objects("name", "arguments")},
	},
	// Command R7B and later: JSON lists of actions.
	"cohere": {
		think:   Tags{"<|START_THINKING|>", "<|END_THINKING|>"},
		forms:   []form{{open: "<|START_ACTION|>", tag: "<|END_ACTION|>", end: jsonTagEnd("<|END_ACTION|>"), parse: parseJSON}},
		control: []string{"<|START_RESPONSE|>", "<|END_RESPONSE|>"},
		writes:  &writing{open: "<|START_ACTION|>", begin: "[\n", next: ",\n", end: "\n]<|END_ACTION|>", call: objects("tool_name", "parameters")},
	},
}

// toolCallObjects and toolCallFunctions are the two ways to write what toolCallForms read.
var (
	toolCallObjects = writing{
		open: "<tool_call>", begin: "\n", next: "\n</tool_call>\n<tool_call>\n", end: "\n</tool_call>", call: objects("name", "arguments"),
	}
	toolCallFunctions = writing{
		open: "<tool_call>", begin: "\n", next: "\n</tool_call>\n<tool_call>\n", end: "\n</tool_call>", avoid: parameterClose,
		call: element{
			head: "<function=", afterName: ">\n", tail: "</function>",
			open: parameterOpen, afterKey: ">\n", closed: "\n" + parameterClose + "\n", avoid: parameterClose,
		}.call,
	}
	glmCalls = writing{
		open: "<tool_call>", next: "</tool_call>\n<tool_call>", end: "</tool_call>", avoid: "</arg_value>",
		call: element{open: "<arg_key>", afterKey: "</arg_key><arg_value>", closed: "</arg_value>", avoid: "</arg_value>"}.call,
	}
)

// aliases are other names of formats: those of ollama, and of models that share a format.
var aliases = map[string]string{
	"none":              "passthrough",
	"qwen3-thinking":    "qwen3",
	"qwen3-vl-instruct": "qwen3",
	"qwen3-vl-thinking": "qwen3",
	"nemotron-3-nano":   "nemotron-3",
	"nemotron-3.5-nano": "nemotron-3",
	"laguna":            "glm-4.7",
	"glm-4.6":           "glm-4.7",
	"deepseek3.1":       "deepseek3",
	"deepseek-r1":       "deepseek3",
	"cogito":            "deepseek3",
	"ministral":         "mistral",
	"llama3.1":          "llama3",
	"granite3":          "granite",
	"phi4-mini":         "granite",
}
