package parse

import (
	"errors"

	"github.com/ingotml/ingot/chat/parse/calls"
)

// format defines how a family of models writes thinking and calls.
type format struct {
	think         Tags
	thinks        bool   // templates show the thinking by its opening tag: the closing one has other uses
	anywhere      bool   // thinking may also begin after text; otherwise only at the start of the response
	name          string // word that may follow the opening tag of thinking
	forms         []form
	bare          *form                // form of a call without a tag, at the start of a response
	control       []string             // tags dropped anywhere in the content
	lead          string               // tag that may precede the opening tag of a call
	around        []string             // tags around calls, dropped anywhere in the content if there are tools
	noise         []string             // texts dropped directly after a call, besides closing tags
	frame         Tags                 // tags around the content, which may contain them, too
	framesThought bool                 // the frame comes only after thinking
	syntax        *calls.Syntax        // for grammars of calls; nil: unknown
	parser        func(Options) Parser // nil: the machine that the fields above configure
	final         string               // begins the final message of a response; "": a response is one message
	rules         string               // EBNF rules for a whole response; "final" matches the text before the final one
}

// form is one syntax of a call.
type form struct {
	open  string // opening tag
	first string // of a form without a tag: the bytes that it may begin with
	tag   string // closing tag; "" if the body determines its own end
	end   func(offer) ender
	// parse parses a body. complete is false if the text ended inside the call; parse must then fail unless the call can
	// be used as it is.
	parse func(t tools, body string, complete bool) ([]ToolCall, error)
	// untilEnd reports whether the end of the text may end the call.
	untilEnd func(body []byte) bool
}

// errNoCall means that the text is not a call but content.
var errNoCall = errors.New("no call")

var thinkTags = Tags{"<think>", "</think>"}

const seedClose = "</seed:tool_call>"

// toolCallForms are the forms of <tool_call>: a JSON object, or a function with tagged parameters. The function may
// also occur without <tool_call>.
var toolCallForms = []form{
	orJSON(functionForm("<tool_call>", "</tool_call>")),
	functionForm(functionOpen, ""),
}

// formats are the known formats. They have Ollama's names where Ollama has one.
var formats = map[string]*format{
	// All text is content.
	"passthrough": {},
	// Thinking and content, no calls.
	"thinking": {think: thinkTags},
	// JSON in <tool_call>: Hermes 2 Pro, Qwen 2.5, Granite 4 and others. Small models, among them those of Qwen 2.5 Coder,
	// often leave the tags out or write a code fence instead.
	"hermes": {think: thinkTags, forms: toolCallForms, syntax: &toolCallObjects,
		bare: &form{first: "{[`", end: func(offer) ender { return &fencedEnd{fence: jsonTag{tag: fence}} },
			parse: parseFenced}},
	"qwen3": {think: thinkTags, forms: toolCallForms,
		syntax: &toolCallObjects},
	// <function=...> in <tool_call>. These models sometimes forget </think> before a call.
	"qwen3-coder": {think: thinkTags, forms: toolCallForms,
		syntax: &toolCallFunctions},
	"qwen3.5": {think: thinkTags, forms: toolCallForms,
		syntax: &toolCallFunctions},
	"nemotron-3": {think: thinkTags, forms: toolCallForms,
		syntax: &toolCallFunctions},
	// JSON in <tool_call>, and content in <response>: Ernie 4.5 that thinks.
	"ernie4.5": {think: thinkTags, forms: toolCallForms,
		frame: Tags{"<response>", "</response>"}, syntax: &toolCallObjects},
	// <function=...> in <seed:tool_call>. A budget of 0 opens the thinking with a reflection on it.
	"seed-oss": {
		think: Tags{"<seed:think>", "</seed:think>"}, name: "<seed:cot_budget_reflect>",
		forms: []form{functionForm("<seed:tool_call>", seedClose)},
		syntax: &calls.Syntax{
			Open: "<seed:tool_call>", Begin: "\n", Next: "\n" + seedClose + "\n<seed:tool_call>\n", End: "\n" + seedClose,
			Avoid: parameterClose,
			Call: calls.Element{
				Head: "<function=", AfterName: ">\n", Tail: "</function>",
				Open: parameterOpen, AfterKey: ">", Closed: parameterClose + "\n", Avoid: parameterClose,
			}.Call,
		},
	},
	// Calls of Python in <function_calls>, one on each line: Olmo 3.
	"olmo3": {
		think: thinkTags, forms: []form{{open: "<function_calls>", tag: "</function_calls>",
			end: func(offer) ender { return &pythonTag{tag: "</function_calls>"} }, parse: parsePythonCalls}},
		syntax: &calls.Syntax{Open: "<function_calls>", Next: "\n", End: "</function_calls>", Call: calls.Pythonic},
	},
	// A JSON list in <tool_calls>, and content in <answer>: Hunyuan A13B. Jamba writes such lists, too.
	"hunyuan": {
		think: thinkTags, forms: []form{{open: "<tool_calls>", tag: "</tool_calls>", end: jsonTagEnd("</tool_calls>"),
			parse: parseJSON}},
		frame: Tags{"<answer>", "</answer>"},
		syntax: &calls.Syntax{Open: "<tool_calls>", Begin: "[", Next: ", ", End: "]</tool_calls>",
			Call: calls.Objects("name", "arguments")},
	},
	// Solar Open: messages of an assistant that think, respond or call.
	"solar-open": {
		think: Tags{"<|think|>", "<|end|>"}, thinks: true,
		forms: []form{{open: "<|tool_call:begin|>", tag: solarClose, end: func(offer) ender {
			return &headed{marks: []string{solarName, solarArgs}, need: 2, tags: []string{solarClose}}
		}, parse: parseSolar}},
		control: []string{"<|begin|>assistant", "<|content|>", "<|end|>", "<|flush|>"},
		lead:    "<|tool_calls|>", noise: []string{"<|calls|>"},
		syntax: &calls.Syntax{
			Open: "<|tool_calls|>", Begin: "<|tool_call:begin|>", Next: "<|tool_call:end|><|tool_call:begin|>",
			End: "<|tool_call:end|>", Call: solarCall,
		},
	},
	// JSON lists in <TOOLCALL>: Nemotron before version 3. The small model writes the tag in lower case.
	"nemotron": {think: thinkTags, forms: []form{
		{open: "<TOOLCALL>", tag: "</TOOLCALL>", end: jsonTagEnd("</TOOLCALL>"), parse: parseJSON},
		{open: "<toolcall>", tag: "</toolcall>", end: jsonTagEnd("</toolcall>"), parse: parseJSON},
	}, syntax: &calls.Syntax{Open: "<TOOLCALL>", Begin: "[", Next: ", ", End: "]</TOOLCALL>",
		Call: calls.Objects("name", "arguments")}},
	// GLM 4.5 to 4.7, and other models with the same tags.
	"glm-4.7": {think: thinkTags, forms: []form{
		{open: glmOpen, tag: glmClose, end: func(offer) ender { return &glmEnd{} }, parse: parseGLM},
	}, syntax: &glmCalls},
	"gemma4": {
		think: Tags{"<|channel>", "<channel|>"}, anywhere: true, name: "thought\n",
		forms: []form{{open: "<|tool_call>", tag: gemmaClose, end: func(offer) ender { return &gemmaEnd{} },
			parse: parseGemma}},
		noise: []string{"<|tool_response>", "<turn|>"},
		// Grammars write the arguments as JSON, which the parser also accepts. The last brace ends the call.
		syntax: &calls.Syntax{Open: "<|tool_call>", Begin: "call:", Next: "<tool_call|><|tool_call>call:",
			Call: calls.Named("")},
	},
	// DeepSeek V3 and R1 put the JSON in a code fence, V3.1 does not.
	"deepseek3": {
		think: thinkTags,
		forms: []form{{
			open: "<｜tool▁call▁begin｜>", tag: "<｜tool▁call▁end｜>", end: func(offer) ender {
				return &headed{marks: []string{deepSeekMark}, need: 1, tags: []string{"<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"}}
			}, parse: parseDeepSeek,
		}},
		lead: "<｜tool▁calls▁begin｜>", noise: []string{"<｜tool▁calls▁end｜>"},
		syntax: &calls.Syntax{
			Open: "<｜tool▁calls▁begin｜>", Begin: "<｜tool▁call▁begin｜>", Next: "<｜tool▁call▁end｜><｜tool▁call▁begin｜>",
			End: "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", Call: calls.Named("<｜tool▁sep｜>"),
		},
	},
	// DeepSeek V3.2 and V4, which differ in the name of the tag: elements inside it, with an attribute that tells whether
	// a parameter is a string. MiniMax M2 and dots write the same elements without marks and without that attribute.
	// https://huggingface.co/deepseek-ai/DeepSeek-V4-Flash/blob/main/encoding/README.md
	"deepseek3.2": {
		think: thinkTags, forms: []form{invokeForm("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "｜DSML｜")},
		syntax: invokes("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "｜DSML｜"),
	},
	"deepseek4": {
		think: thinkTags, forms: []form{invokeForm("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>", "｜DSML｜")},
		syntax: invokes("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>", "｜DSML｜"),
	},
	"dots": {
		think: thinkTags, forms: []form{invokeForm("<dots_function_call>", "</dots_function_call>", "")},
		syntax: invokes("<dots_function_call>", "</dots_function_call>", ""),
	},
	"minimax": {
		think: thinkTags, forms: []form{invokeForm("<minimax:tool_call>", "</minimax:tool_call>", "")},
		syntax: invokes("<minimax:tool_call>", "</minimax:tool_call>", ""),
	},
	// [TOOL_CALLS] and a JSON list, or, since tokenizer version 11, a name and its arguments.
	"mistral": {
		think: Tags{"[THINK]", "[/THINK]"}, anywhere: true,
		forms: []form{{open: "[TOOL_CALLS]", end: func(offer) ender {
			return &headed{marks: []string{"[CALL_ID]", "[ARGS]"}, list: true}
		}, parse: parseMistral}},
		syntax: &calls.Syntax{Open: "[TOOL_CALLS]", Begin: "[", Next: ", ", End: "]",
			Call: calls.Objects("name", "arguments")},
	},
	// Llama 3.1 and later, and models derived from them. A call is a JSON object, a JSON list, or a list of Python calls,
	// and is the whole response; or the python tag precedes a JSON object or Python code. Llama 4 writes empty python
	// tags.
	"llama3": {
		forms: []form{{
			open: "<|python_tag|>", end: func(o offer) ender { return &pythonEnd{o: o} }, parse: parsePython,
			untilEnd: func(body []byte) bool { return firstByte(body) != '{' },
		}},
		bare:   &form{first: "{[", end: func(offer) ender { return &bareEnd{} }, parse: parseBare},
		around: []string{"<|python_start|>", "<|python_end|>"},
		noise:  []string{";", ",", "<|eom_id|>", "<|eot_id|>"},
		syntax: &calls.Syntax{Next: "; ", Call: calls.Objects("name", "parameters")},
	},
	// Granite 3 and Phi-4-mini: a JSON list after a tag. Phi writes a closing tag. Granite 3.3 that thinks writes content
	// in <response>.
	"granite": {
		think: thinkTags,
		forms: []form{{open: "<|tool_call|>", end: func(offer) ender { return &jsonEnd{} }, parse: parseJSON}},
		frame: Tags{"<response>", "</response>"}, framesThought: true,
		noise: []string{"<|/tool_call|>", "<|end_of_text|>"},
		syntax: &calls.Syntax{Open: "<|tool_call|>", Begin: "[", Next: ", ", End: "]",
			Call: calls.Objects("name", "arguments")},
	},
	// Apertus: a JSON list of objects with the name as their key. Calls may be part of the thinking.
	"apertus": {
		think: Tags{"<|inner_prefix|>", "<|inner_suffix|>"},
		forms: []form{{open: "<|tools_prefix|>", tag: "<|tools_suffix|>", end: jsonTagEnd("<|tools_suffix|>"),
			parse: parseKeyed}},
		syntax: &calls.Syntax{Open: "<|tools_prefix|>", Begin: "[", Next: ", ", End: "]<|tools_suffix|>", Call: calls.Keyed},
	},
	// gpt-oss.
	"harmony": {
		think: Tags{harmonyAnalysis, harmonyEnd}, thinks: true, parser: newHarmony, final: harmonyFinal, rules: harmonyRules,
		syntax: &harmonySyntax,
	},
	// Command R7B and later: JSON lists of actions.
	"cohere": {
		think: Tags{"<|START_THINKING|>", "<|END_THINKING|>"},
		forms: []form{{open: "<|START_ACTION|>", tag: "<|END_ACTION|>", end: jsonTagEnd("<|END_ACTION|>"),
			parse: parseJSON}},
		control: []string{"<|START_RESPONSE|>", "<|END_RESPONSE|>"},
		syntax: &calls.Syntax{Open: "<|START_ACTION|>", Begin: "[\n", Next: ",\n", End: "\n]<|END_ACTION|>",
			Call: calls.Objects("tool_name", "parameters")},
	},
}

// Syntax of the calls that toolCallForms and GLM models use.
var (
	toolCallObjects = calls.Syntax{
		Open: "<tool_call>", Begin: "\n", Next: "\n</tool_call>\n<tool_call>\n", End: "\n</tool_call>",
		Call: calls.Objects("name", "arguments"),
	}
	toolCallFunctions = calls.Syntax{
		Open: "<tool_call>", Begin: "\n", Next: "\n</tool_call>\n<tool_call>\n", End: "\n</tool_call>", Avoid: parameterClose,
		Call: calls.Element{
			Head: "<function=", AfterName: ">\n", Tail: "</function>",
			Open: parameterOpen, AfterKey: ">\n", Closed: "\n" + parameterClose + "\n", Avoid: parameterClose,
		}.Call,
	}
	glmCalls = calls.Syntax{
		Open: "<tool_call>", Next: "</tool_call>\n<tool_call>", End: "</tool_call>", Avoid: "</arg_value>",
		Call: calls.Element{Open: "<arg_key>", AfterKey: "</arg_key><arg_value>", Closed: "</arg_value>",
			Avoid: "</arg_value>"}.Call,
	}
)

// aliases are other names of formats: names that Ollama uses, and models that share a format.
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
	"gpt-oss":           "harmony",
}

// solarCall describes calls of Solar Open, which have an id.
func solarCall(o calls.Offer) (string, error) {
	args, err := o.Arguments()
	return calls.Seq("[a-z0-9]{10,10}", calls.Literal(solarName+o.Name+solarArgs), args), err
}
