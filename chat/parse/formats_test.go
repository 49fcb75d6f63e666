package parse

import (
	"encoding/json"
	"github.com/ingotml/ingot/chat/parse/calls"
	"strings"
	"testing"
)

// spelling is a format's text of the call f({"a":"x"}), for tests of all formats.
type spelling struct {
	name        string
	open, close string              // of thinking
	call        func(string) string // a call of f with the argument "a", given as JSON
	cut         string              // an incomplete call
}

var spellings = []spelling{
	{"hermes", "<think>\n", "\n</think>\n\n", hermes, `<tool_call>{"name": "f", "argum`},
	{"qwen3", "<think>\n", "\n</think>\n\n", hermes, `<tool_call>{"name": "f", "arguments": {"a": 1`},
	{"qwen3-coder", "<think>\n", "\n</think>\n\n", function1, "<tool_call>\n<function=f>\n<parameter=a>\nhal"},
	{"qwen3.5", "<think>\n", "\n</think>\n\n", function1, "<tool_call>\n<function=f>\n<parameter=a>\nhal"},
	{"nemotron-3", "<think>\n", "</think>", function1, "<tool_call>\n<function=f"},
	{"nemotron", "<think>", "</think>",
		func(a string) string { return `<TOOLCALL>[{"name": "f", "arguments": {"a": ` + a + `}}]</TOOLCALL>` },
		`<TOOLCALL>[{"name": "f", "arguments": {}}`},
	{"glm-4.7", "<think>", "</think>\n", func(a string) string {
		return "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>" + plain(a) + "</arg_value>\n</tool_call>"
	}, "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>hal"},
	{"gemma4", "<|channel>thought\n", "\n<channel|>",
		func(a string) string { return `<|tool_call>call:f{a:<|"|>` + plain(a) + `<|"|>}<tool_call|>` },
		`<|tool_call>call:f{a:<|"|>hal`},
	{"deepseek3", "<think>\n", "\n</think>\n\n", func(a string) string {
		return "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": " + a + "}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
	}, "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\""},
	{"deepseek3.2", "<think>", "</think>", dsmlCalls("function_calls"),
		"<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" string=\"true\">hal"},
	{"deepseek4", "<think>", "</think>", dsmlCalls("tool_calls"),
		"<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" string=\"true\">hal"},
	{"minimax", "<think>\n", "\n</think>\n\n", func(a string) string {
		return "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">" + plain(a) +
			"</parameter>\n</invoke>\n</minimax:tool_call>"
	}, "<minimax:tool_call>\n<invoke name=\"f\">\n"},
	{"mistral", "[THINK]", "[/THINK]", func(a string) string { return `[TOOL_CALLS]f[ARGS]{"a": ` + a + `}` },
		`[TOOL_CALLS]f[ARGS]{"a": `},
	{"llama3", "", "", func(a string) string { return `<|python_tag|>{"name": "f", "parameters": {"a": ` + a + `}}` },
		`<|python_tag|>{"name": "f", "param`},
	{"granite", "<think>", "</think>",
		func(a string) string { return `<|tool_call|>[{"name": "f", "arguments": {"a": ` + a + `}}]` },
		`<|tool_call|>[{"name": "f", "argum`},
	{"apertus", "<|inner_prefix|>", "<|inner_suffix|>",
		func(a string) string { return `<|tools_prefix|>[{"f": {"a": ` + a + `}}]<|tools_suffix|>` },
		`<|tools_prefix|>[{"f": {"a"`},
	{"cohere", "<|START_THINKING|>", "<|END_THINKING|>", func(a string) string {
		return `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"a": ` + a + `}}]<|END_ACTION|>`
	}, `<|START_ACTION|>[{"tool_call_id": "0"`},
	{"ernie4.5", "<think>\n", "\n</think>\n\n", func(a string) string { return "\n" + hermes(a) + "\n" },
		`<tool_call>{"name": "f"`},
	{"seed-oss", "<seed:think>", "</seed:think>", func(a string) string {
		return "<seed:tool_call>\n<function=f>\n<parameter=a>" + plain(a) + "</parameter>\n</function>\n</seed:tool_call>"
	}, "<seed:tool_call>\n<function=f>\n<parameter=a>x"},
	{"olmo3", "<think>", "</think>", func(a string) string {
		return "<function_calls>f(a=" + a + ")</function_calls>"
	}, "<function_calls>f(a="},
	{"hunyuan", "<think>\n", "\n</think>\n<answer>\n", func(a string) string {
		return `<tool_calls>[{"name": "f", "arguments": {"a": ` + a + `}}]</tool_calls>`
	}, `<tool_calls>[{"name": "f"`},
	{"solar-open", "<|think|>", "<|end|><|begin|>assistant<|content|>", func(a string) string {
		return `<|tool_calls|><|tool_call:begin|>0<|tool_call:name|>f<|tool_call:args|>{"a": ` + a +
			`}<|tool_call:end|><|calls|>`
	}, `<|tool_call:begin|>0<|tool_call:name|>f<|tool_call:args|>{`},
	{"dots", "<think>", "</think>", func(a string) string {
		return "<dots_function_call>\n<invoke name=\"f\">\n<parameter name=\"a\">" + plain(a) +
			"</parameter>\n</invoke>\n</dots_function_call>"
	}, "<dots_function_call>\n<invoke name=\"f\">"},
}

func hermes(a string) string {
	return "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": " + a + "}}\n</tool_call>"
}

func function1(a string) string {
	return "<tool_call>\n<function=f>\n<parameter=a>\n" + plain(a) + "\n</parameter>\n</function>\n</tool_call>"
}

// plain returns the text of a JSON string, and other JSON unchanged.
func plain(a string) string {
	var s string
	if json.Unmarshal([]byte(a), &s) != nil {
		return a
	}
	return s
}

func (s spelling) want(a string) string {
	id := ""
	if s.name == "cohere" || s.name == "solar-open" {
		id = "#0"
	}
	return `f{"a":` + a + `}` + id
}

func TestEveryFormat(t *testing.T) {
	seen := map[string]bool{"passthrough": true, "thinking": true, "harmony": true} // see TestHarmony
	for _, s := range spellings {
		seen[s.name] = true
		gap := ""
		if strings.HasSuffix(s.call("1"), "\n") {
			gap = `\n`
		}
		x, uni := s.call(`"x"`), s.call(`"grüße 😀 東京"`)
		do := func(text, want string) {
			t.Helper()
			check(t, s.name, offered, text, want)
		}
		do("", "")
		do("plain text,\n  with lines \n", `C"plain text,\n  with lines \n"`)
		do("ünï 東京 😀", `C"ünï 東京 😀"`)
		do(x, s.want(`"x"`))
		do(uni, s.want(`"grüße 😀 東京"`))
		do(" "+x, s.want(`"x"`))
		do("before\n\n"+x, `C"before" `+s.want(`"x"`))
		do(x+"\n after \n", s.want(`"x"`)+` C"after \n"`)
		do(x+"\n"+uni, s.want(`"x"`)+" "+s.want(`"grüße 😀 東京"`))
		do("a "+x+" b "+x+" c", `C"a" `+s.want(`"x"`)+` C"`+gap+` b" `+s.want(`"x"`)+` C"`+gap+` c"`)
		do("text "+s.cut, `C"text" `+describe([]Event{{Kind: Damaged, Text: " " + s.cut, Err: ErrIncomplete}}))
		if s.open == "" {
			continue
		}
		do(s.open+"hm <b> ü\n\n x"+s.close+"yes", `T"hm <b> ü\n\n x" C"yes"`)
		do("\n"+s.open+"hm"+s.close+x, `T"hm" `+s.want(`"x"`))
		do(s.open+"never closed\n", `T"never closed\n"`)
		do(s.open+s.close+"yes", `C"yes"`)
		do(s.open+s.close, "")
		o := offered
		o.Thinking = true
		check(t, s.name, o, "hm"+s.close+"yes", `T"hm" C"yes"`)
		check(t, s.name, o, "\n"+s.open+"hm"+s.close+"yes", `T"hm" C"yes"`)
		check(t, s.name, o, "hm "+strings.TrimSpace(s.close)[:3], `T"hm `+strings.TrimSpace(s.close)[:3]+`"`)
	}
	for _, name := range Names() {
		if !seen[name] {
			t.Errorf("no spelling of %s is tested", name)
		}
	}
}

// JSON arguments may contain any value.
func TestNested(t *testing.T) {
	const nested = `{"z":[1,2.50,{"b":null,"a":"}]</tool_call>"}],"q":"\"{"}`
	for _, s := range spellings {
		switch s.name {
		case "glm-4.7":
			check(t, s.name,
				Options{Tools: []calls.Tool{{Name: "f", Parameters: json.RawMessage(`{"properties":{"a":{"type":"object"}}}`)}}},
				s.call(`{"z": [1, {"b": null, "a": "}]"}]}`), `f{"a":{"z":[1,{"b":null,"a":"}]"}]}}`)
		case "qwen3-coder", "qwen3.5", "nemotron-3", "minimax", "dots", "seed-oss":
			check(t, s.name,
				Options{Tools: []calls.Tool{{Name: "f", Parameters: json.RawMessage(`{"properties":{"a":{"type":"object"}}}`)}}},
				s.call(nested), s.want(nested))
		case "gemma4":
			check(t, s.name, offered,
				`<|tool_call>call:f{z:[1,2.50,{b:null,a:<|"|>}]<tool_call|>"<|"|>}],<|"|>q r<|"|>:true,e:{},l:[]}<tool_call|>`,
				`f{"z":[1,2.50,{"b":null,"a":"}]<tool_call|>\""}],"q r":true,"e":{},"l":[]}`)
		default:
			check(t, s.name, offered, s.call(nested), s.want(nested))
		}
	}
}

func TestToolCallTag(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		// Variants of JSON calls.
		{`<tool_call>{"name":"f"}</tool_call>`, `f{}`},
		{`<tool_call>{"name":"f","arguments":null}</tool_call>`, `f{}`},
		{`<tool_call>{"name":"f","arguments":"{\"b\": 1, \"a\": 2}"}</tool_call>`, `f{"b":1,"a":2}`},
		{`<tool_call>{"id":"c1","type":"function","function":{"name":"f","arguments":{}}}</tool_call>`, `f{}#c1`},
		{`<tool_call>{"name":"f","arguments":{}} {"name":"g","arguments":{}}</tool_call>`, `f{} g{}`},
		{`<tool_call>[{"name":"f"},{"name":"g"}]</tool_call>`, `f{} g{}`},
		{"<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"two\nlines\"}}</tool_call>", `f{"a":"two\u000alines"}`},
		{`<tool_call>{"name":"f"}</tool_call></tool_call> x`, `f{} C"x"`},
		// Malformed calls.
		{`a <tool_call>{"name":}</tool_call> b`, `C"a" D" <tool_call>" C"{\"name\":}</tool_call> b"`},
		{`<tool_call></tool_call>`, `D"<tool_call></tool_call>"`},
		{`<tool_call>{"arguments":{}}</tool_call>`, `D"<tool_call>{\"arguments\":{}}</tool_call>"`},
		{`<tool_call>{"name":"f","arguments":[1]}</tool_call>`,
			`D"<tool_call>{\"name\":\"f\",\"arguments\":[1]}</tool_call>"`},
		{`<tool_call>{"name":"f","arguments":{"a":"open}}</tool_call> b <tool_call>{"name":"g"}</tool_call>`,
			`D"<tool_call>" C"{\"name\":\"f\",\"arguments\":{\"a\":\"open}}</tool_call> b" g{}`},
		{`<tool_call>{"name":"f","arguments":{"a":"open}}</tool_call> b <tool_call>{"name":"g","arguments":{"x":"}}` +
			`</tool_call> c <tool_call>{"name":"g"}</tool_call>`,
			`D"<tool_call>" C"{\"name\":\"f\",\"arguments\":{\"a\":\"open}}</tool_call> b" D" <tool_call>" ` +
				`C"{\"name\":\"g\",\"arguments\":{\"x\":\"}}</tool_call> c" g{}`},
		{`<tool_call>{"name":"f"}</tool_call><tool_call>oops</tool_call><tool_call>{"name":"g"}</tool_call>`,
			`f{} C"<tool_call>oops</tool_call>" g{}`},
		// At the end of the text, a usable call is accepted.
		{`<tool_call>{"name":"f","arguments":{}}`, `f{}`},
		{"<tool_call>{\"name\":\"f\",\"arguments\":{}}\n</tool_c", `f{}`},
		{`x <tool_ca`, `C"x <tool_ca"`},
		{`<`, `C"<"`},
		{`a < b <tool> <<tool_call>{"name":"f"}</tool_call>`, `C"a < b <tool> <" f{}`},
		// Thinking is only recognized at the start of a response.
		{`say <think>x</think>`, `C"say <think>x</think>"`},
		{`<think>a</think> <think>b</think>c`, `T"a\n\nb" C"c"`},
		// Functions in tags instead of JSON.
		{"<tool_call><function=f><parameter=b>1</parameter><parameter=a>\n\n x \n\n</parameter></function></tool_call>",
			`f{"b":"1","a":"\n x \n"}`},
		{"<tool_call>\n<function=f>\n</function>\n</tool_call>", `f{}`},
		{"<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call> y", `f{"a":"x"} C"y"`},
		{"<tool_call><function=f><parameter=a>\nx\n<parameter=b>\ny\n</parameter></function></tool_call>",
			`f{"a":"x","b":"y"}`},
		{"<tool_call><function=f><parameter=a>x</function></tool_call>", `f{"a":"x"}`},
		{"<tool_call><function=f><parameter=a></tool_call> & </parameter></function></tool_call>",
			`f{"a":"</tool_call> & "}`},
		{`<tool_call><function="f"><parameter='a'>x</parameter></function></tool_call>`, `f{"a":"x"}`},
		{"<tool_call><function=f></function><function=g></function></tool_call>", `f{} g{}`},
		{"<tool_call><function=f><parameter=a>1</parameter><parameter=a>2</parameter></function></tool_call>", `f{"a":"2"}`},
		{"<tool_call><function=></function></tool_call>", `C"<tool_call><function=></function></tool_call>"`},
		{"<tool_call><fn></tool_call>", `C"<tool_call><fn></tool_call>"`},
		{"<tool_call><function=f><parameter=a>1</parameter></function>", `f{"a":"1"}`},
		{"<tool_call><function=f><parameter=a>1</parameter>", `f{"a":"1"}`},
		{"<tool_call><function=nosuch><parameter=a>1</parameter>",
			`I"<tool_call><function=nosuch><parameter=a>1</parameter>"`},
		{"<tool_call><function=get_weather><parameter=days>1</parameter>",
			`I"<tool_call><function=get_weather><parameter=days>1</parameter>"`},
		{"<tool_call><function=get_weather><parameter=days>1</parameter></function>", `get_weather{"days":1}`},
	} {
		check(t, "qwen3.5", offered, c.in, c.want)
		check(t, "hermes", offered, c.in, c.want)
	}
	o := offered
	o.Thinking = true
	check(t, "qwen3.5", o, "hm\n<tool_call>{\"name\":\"f\"}</tool_call>", `T"hm" f{}`)
	check(t, "hermes", o, "the tag <tool_call> is</think>x", `T"the tag <tool_call> is" C"x"`)
}

// dsmlCalls writes a call of f as DeepSeek V3.2 and V4 do, in a tag of the given name.
func dsmlCalls(tag string) func(a string) string {
	return func(a string) string {
		text := "true"
		if plain(a) == a {
			text = "false"
		}
		return "<｜DSML｜" + tag + ">\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" string=\"" + text + "\">" +
			plain(a) + "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜" + tag + ">"
	}
}

func TestInvokes(t *testing.T) {
	dsml := strings.NewReplacer("</", "</｜DSML｜", "<", "<｜DSML｜").Replace
	calls := func(s string) string { return dsml("<function_calls>" + s + "</function_calls>") }
	for _, c := range []struct{ in, want string }{
		{`<invoke name="f"></invoke>`, `f{}`},
		{"\n<invoke name=\"f\">\n<parameter name=\"a\" string=\"true\">1</parameter>\n" +
			"<parameter name=\"b\" string=\"false\">[1, {\"x\": null}]</parameter>\n</invoke>\n",
			`f{"a":"1","b":[1,{"x":null}]}`},
		{`<invoke name="get_weather"><parameter name="days" string="true">1</parameter></invoke>`, `get_weather{"days":"1"}`},
		{`<invoke name="get_weather"><parameter name="days">1</parameter></invoke>`, `get_weather{"days":1}`},
		{`<invoke name="f"><parameter name="a" string="false">half {</parameter></invoke>`, `f{"a":"half {"}`},
		{`<invoke name="f"></invoke> <invoke name="g"><parameter name="a" string="true"> <b> &amp; "q" </parameter></invoke>`,
			`f{} g{"a":" <b> &amp; \"q\" "}`},
		{`<invoke name="f"><parameter name="a" string="true">1</parameter><parameter name="a" string="true">2</parameter>` +
			`</invoke>`, `f{"a":"2"}`},
	} {
		c.in = strings.ReplaceAll(calls(c.in), "<｜DSML｜b>", "<b>")
		check(t, "deepseek3.2", offered, c.in, c.want)
	}
	check(t, "deepseek3.2", offered, calls(``), describe([]Event{{Kind: Damaged, Text: calls(``), Err: ErrCall}}))
	for _, none := range []string{`f`, `<invoke>x</invoke>`, `<invoke name=""></invoke>`, `<invoke name="f">x</invoke>`,
		`<invoke name="f"><parameter>x</parameter></invoke>`} {
		check(t, "deepseek3.2", offered, calls(none), describe([]Event{{Kind: Content, Text: calls(none)}}))
	}
	// Closing tags may be missing.
	check(t, "deepseek3.2", offered, calls(`<invoke name="f">`), `f{}`)
	check(t, "deepseek3.2", offered, calls(`<invoke name="f"><parameter name="a">x</invoke>`), `f{"a":"x"}`)
	// At the end of the text, a usable call is accepted.
	whole := dsml(`<function_calls><invoke name="get_weather"><parameter name="city" string="true">Rome</parameter>` +
		`</invoke>`)
	check(t, "deepseek3.2", offered, whole, `get_weather{"city":"Rome"}`)
	for _, cut := range []string{strings.TrimSuffix(whole, "</｜DSML｜invoke>"), strings.ReplaceAll(whole, "city", "town"),
		strings.ReplaceAll(whole, "get_weather", "nosuch")} {
		check(t, "deepseek3.2", offered, cut, describe([]Event{{Kind: Damaged, Text: cut, Err: ErrIncomplete}}))
	}
}

func TestTyped(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"city", "12", `"12"`}, {"city", "NULL", "null"}, {"city", "", `""`}, {"nosuch", "true", `"true"`},
		{"days", "12", "12"}, {"days", "-0", "0"}, {"days", "1.5", `"1.5"`},
		{"days", "99999999999999999999", `"99999999999999999999"`},
		{"high", "1.50", "1.5"}, {"high", "2.0", "2"}, {"high", "1e3", "1000"}, {"high", "1e30", "1e+30"},
		{"high", "Inf", `"Inf"`}, {"high", "nan", `"nan"`}, {"high", "x", `"x"`},
		{"wet", "True", "true"}, {"wet", "false", "false"}, {"wet", "maybe", "false"},
		{"list", "[1, {\"b\": 1, \"a\": 2}]", `[1,{"b":1,"a":2}]`}, {"list", "{}", `"{}"`}, {"list", "[1", `"[1"`},
		{"more", "{\"b\": 1, \"a\": [ ]}", `{"b":1,"a":[]}`}, {"more", "[]", `"[]"`},
		{"any", "12", "12"}, {"any", "twelve", `"twelve"`}, {"two", "null", "null"}, {"two", "3", "3"},
	} {
		in := tags("get_weatherK(" + c.key + ")KV(" + c.value + ")V")
		check(t, "glm-4.7", offered, "<tool_call>"+in+"</tool_call>", `get_weather{"`+c.key+`":`+c.want+"}")
	}
}

func TestThinkTags(t *testing.T) {
	o := Options{Think: Tags{"<seed:think>", "</seed:think>"}}
	check(t, "hermes", o, "<seed:think>a</seed:think>b", `T"a" C"b"`)
	check(t, "passthrough", o, "<seed:think>a</seed:think>b <tool_call>", `T"a" C"b <tool_call>"`)
	// A template's tags are read besides those of the format.
	o = Options{Tools: offered.Tools, Think: thinkTags}
	check(t, "gemma4", o, "<|channel>thought\na<channel|>b<think>c</think>d", `T"a" C"b" T"\n\nc" C"\n\nd"`)
	check(t, "mistral", o, "[THINK]a[/THINK]b", `T"a" C"b"`)
	check(t, "cohere", o, "<think>a</think>b", `T"a" C"b"`)
	check(t, "passthrough", Options{}, "<think>a</think>", `C"<think>a</think>"`)
	check(t, "thinking", Options{}, "<think>a</think> <tool_call>", `T"a" C"<tool_call>"`)
}
