package parse

import (
	"errors"
	"fmt"
	"github.com/ingotml/ingot/chat/parse/calls"
	"strings"
	"testing"
)

func TestGLM(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"fK(a)KV(<b>&amp; </tool_cal>)V", `f{"a":"<b>&amp; </tool_cal>"}`},
		{"K(a)KV(1)V f", `f{"a":"1"}`},
		{" f \n K( a )K\nV(\n\nx\n\n)V\n", `f{"a":"\nx\n"}`},
		{"fK(a)KK(b)KV(1)VV(2)V", `f{"a":"1","b":"2"}`},
		{"", `D"<tool_call></tool_call>"`},
		{"K(a)KV(1)V", `D"<tool_call><arg_key>a</arg_key><arg_value>1</arg_value></tool_call>"`},
	} {
		check(t, "glm-4.7", offered, "<tool_call>"+tags(c.in)+"</tool_call>", c.want)
	}
	// At the end of the text, calls are not repaired, but a usable call is accepted.
	for _, c := range []struct {
		in string
		ok bool
	}{
		{"get_weatherK(city)KV(Rome)V", true},
		{"get_weatherK(city)KV(Rome)V\n</tool", true},
		{"f", true},
		{"nosuch", false},
		{"get_weather", false},
		{"get_weatherK(days)KV(1)V", false},
		{"get_weatherK(city)KV(Ro", false},
		{"get_weatherK(city)KV(Rome)VK(days", false},
		{"get_weatherK(city)KRome)V", false},
		{"get_weatherK(city)KV(Rome)VK()KV(1)V", false},
	} {
		in := tags(c.in)
		want := describe([]Event{{Kind: Damaged, Text: "<tool_call>" + in, Err: ErrIncomplete}})
		if c.ok {
			want = `get_weather{"city":"Rome"}`
			if in == "f" {
				want = "f{}"
			}
		}
		check(t, "glm-4.7", offered, "<tool_call>"+in, want)
	}
}

func TestGemma(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`<|tool_call>call:f{}<tool_call|>`, `f{}`},
		{`<|tool_call>call:f{a:1,b:-2.5,c:true,d:null,e:[<|"|>x<|"|>,<|"|>y<|"|>]}<tool_call|><|tool_response>`,
			`f{"a":1,"b":-2.5,"c":true,"d":null,"e":["x","y"]}`},
		{`<|tool_call>call:f{a:1}<tool_call|><|tool_call>call:g{}<tool_call|>`, `f{"a":1} g{}`},
		{`<|tool_call>call:f{a:1}<|tool_call>call:g{}`, `f{"a":1} g{}`}, // missing closing tags
		{`<|tool_call>call:f{"a": "x", b: 'y z'}<tool_call|>`, `f{"a":"x","b":"'y z'"}`},
		{`<|tool_call>call:f{a:Paris}<tool_call|>`, `f{"a":"Paris"}`},
		{`<|tool_call>call:get_weather{city:12}<tool_call|>`, `get_weather{"city":12}`},
		{`<|tool_call>call:f{a:{b:1<tool_call|> x`, `f{"a":{"b":1}} C"x"`}, // missing braces
		{`<|tool_call>call:f{a:<|"|>x}<tool_call|> y`, `f{"a":"x}"} C"y"`},
		{`<|tool_call>f{a:1}<tool_call|>`, `C"<|tool_call>f{a:1}<tool_call|>"`},
		{`<|tool_call>call:f{a:1 2:3,,}<tool_call|>`, ``},
		{`a <|channel>thought
b<channel|> c <|channel>thought
<channel|>d`, `C"a" T"b" C" c d"`},
		{`<|channel>thoughtful<channel|>c`, `T"thoughtful" C"c"`},
		{`<|channel>thou`, `T"thou"`},
	} {
		if c.want == "" || strings.Contains(c.want, "?") {
			_, err := feed(t, mustNew(t, "gemma4", offered), c.in)
			if !errors.Is(err, ErrCall) {
				t.Errorf("%q: error %v", c.in, err)
			}
			continue
		}
		check(t, "gemma4", offered, c.in, c.want)
	}
	deep := `<|tool_call>call:f{a:` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}<tool_call|>`
	if _, err := feed(t, mustNew(t, "gemma4", offered), deep); !errors.Is(err, ErrCall) {
		t.Errorf("error %v", err)
	}
}

func TestDeepSeek(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": \"```\"}\n```<｜tool▁call▁end｜>\n" +
			"<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
			"f{\"a\":\"```\"} g{}"},
		{"x<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\":\"```json {}```\"}<｜tool▁call▁end｜>" +
			"<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "C\"x\" f{\"a\":\"```json {}```\"} g{}"},
		{"<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁calls▁end｜>x", `f{} C"x"`},
		{"<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}", `f{}`},
		{"<｜tool▁call▁begin｜>f<｜tool▁sep｜>", `I"<｜tool▁call▁begin｜>f<｜tool▁sep｜>"`},
		{"<｜tool▁call▁begin｜>f{}<｜tool▁call▁end｜>", `D"<｜tool▁call▁begin｜>" C"f{}<｜tool▁call▁end｜>"`},
		{"<｜tool▁call▁begin｜> <｜tool▁sep｜>{}<｜tool▁call▁end｜>", `D"<｜tool▁call▁begin｜> <｜tool▁sep｜>{}<｜tool▁call▁end｜>"`},
		{"<｜tool", `C"<｜tool"`},
	} {
		check(t, "deepseek3", offered, c.in, c.want)
	}
}

func TestMistral(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`[TOOL_CALLS] [{"name": "f", "arguments": {"a": "]"}, "id": "abc123def"}, {"name": "g", "arguments": {}}]`,
			`f{"a":"]"}#abc123def g{}`},
		{`[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g{}`, `f{"a":1} g{}`},
		{`[TOOL_CALLS]f[CALL_ID]abc[ARGS]{"a": {"b": "}"}} tail`, `f{"a":{"b":"}"}}#abc C"tail"`},
		{`[TOOL_CALLS]{"name": "f", "arguments": {"a": 1}}`, `f{"a":1}`},
		{`[TOOL_CALLS]f[ARGS]{1}`, `D"[TOOL_CALLS]" C"f[ARGS]{1}"`},
		{`[TOOL_CALLS]`, `I"[TOOL_CALLS]"`},
		{`[TOOL_CALLS][]`, `D"[TOOL_CALLS][]"`},
		{`a [THINK]b[/THINK] [x] [TOOL`, `C"a" T"b" C" [x] [TOOL"`},
	} {
		check(t, "mistral", offered, c.in, c.want)
	}
	for _, none := range []string{"[TOOL_CALLS] no arguments", "[TOOL_CALLS]" + strings.Repeat("x", 3*calls.MaxName)} {
		check(t, "mistral", offered, none, `C"`+none+`"`)
	}
}

// TestHermesWithoutTags: calls without <tool_call>, as small models write them, count only at the start and only of
// offered tools.
func TestHermesWithoutTags(t *testing.T) {
	const call, other = `{"name": "f", "arguments": {"a": "x"}}`, `{"name": "g", "arguments": {}}`
	for in, want := range map[string]string{
		call:                            `f{"a":"x"}`,
		"```json\n" + call + "\n```":    `f{"a":"x"}`,
		"```\n" + call + "\n```\nDone.": `f{"a":"x"} C"Done."`,
		"```json\n" + call + "\n" + other + "\n```":   `f{"a":"x"} g{}`,
		"```json\n[" + call + ", " + other + "]\n```": `f{"a":"x"} g{}`,
		call + "\n" + other:                           `f{"a":"x"} g{}`,
		"<think>hm</think>```json\n" + call + "\n```": `T"hm" f{"a":"x"}`,
		"```json\n" + call:                            `f{"a":"x"}`,
	} {
		check(t, "hermes", offered, in, want)
	}
	for _, text := range []string{
		"```json\n" + `{"answer": 42}` + "\n```", "```json\n" + `{"name": "nosuch"}` + "\n```", "```python\nf()\n```",
		"```json5\n" + call + "\n```", "`f` is a tool", "``", "So: ```json\n" + call + "\n```", "So: " + call, "[1, 2]",
		"[a link](x)", "```json\n{1}\n```",
	} {
		check(t, "hermes", offered, text, fmt.Sprintf("C%q", text))
	}
	cut := "```json\n" + `{"name": "f", "argu`
	check(t, "hermes", offered, cut, fmt.Sprintf("I%q", cut))
	check(t, "hermes", Options{}, call, fmt.Sprintf("C%q", call))
}

func TestLlama(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"name": "f", "parameters": {"a": "x"}}`, `f{"a":"x"}`},
		{" \n{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {\"b\":{}}}", `f{} g{"b":{}}`},
		{`{"name": "f", "parameters": {}}, {"name": "g", "arguments": {}} done`, `f{} g{} C"done"`},
		{`{"name": "nosuch", "parameters": {}} x`, `C"{\"name\": \"nosuch\", \"parameters\": {}} x"`},
		{`{"answer": 42}`, `C"{\"answer\": 42}"`},
		{`{"answer": 4`, `C"{\"answer\": 4"`},
		{`{"name": "f", "par`, `I"{\"name\": \"f\", \"par"`},
		{`{"name": "fun", "par`, `C"{\"name\": \"fun\", \"par"`},
		{`so: {"name": "f", "parameters": {}}`, `C"so: {\"name\": \"f\", \"parameters\": {}}"`},
		{`[{"name": "f", "arguments": {"a": 1}, "id": "call_1"}, {"name": "g", "arguments": {}}]`, `f{"a":1}#call_1 g{}`},
		{`[f(a='x', b=[1]), g()] ok`, `f{"a":"x","b":[1]} g{} C"ok"`},
		{`<|python_start|>[f(a="x")]<|python_end|>`, `f{"a":"x"}`},
		{`<|python_start|><|python_end|>{"name": "f", "parameters": {}}`, `f{}`},
		{`[link](x) and [1]`, `C"[link](x) and [1]"`},
		{`[nosuch(a=1)]`, `C"[nosuch(a=1)]"`},
		{`[f(a=`, `I"[f(a="`},
		{`[{"name": "f", "arg`, `I"[{\"name\": \"f\", \"arg"`},
		{`{x}{"name": "f"}`, `C"{x}{\"name\": \"f\"}"`},
		{`<|python_tag|>{"name": "f", "parameters": {}}<|eom_id|>`, `f{}`},
		{`<|python_tag|>f.call(a="x, \"y\"", b=3, c=True, d=[1, 2])`, `f{"a":"x, \"y\"","b":3,"c":true,"d":[1,2]}`},
		{`<|python_tag|>f.call()<|eom_id|>`, `f{}`},
		{`<|python_tag|>f.call(a=")")<|python_tag|>g.call()`, `f{"a":")"} g{}`},
		{`<|python_tag|>print(1)`, `C"<|python_tag|>print(1)"`},
	} {
		check(t, "llama3", offered, c.in, c.want)
	}
	check(t, "llama3", Options{}, `{"name": "f", "parameters": {}}`, `C"{\"name\": \"f\", \"parameters\": {}}"`)
	interpreter := Options{Tools: []calls.Tool{{Name: "code_interpreter"}}}
	check(t, "llama3", interpreter, "<|python_tag|>x = \"a\"\nprint(x)<|eom_id|>",
		`code_interpreter{"code":"x = \"a\"\nprint(x)"}`)
}

func TestNemotron(t *testing.T) {
	check(t, "apertus", offered, `<|inner_prefix|>hm<|tools_prefix|>[{"f": {"a": 1}}, {"g": {}}]<|tools_suffix|>`,
		`T"hm" f{"a":1} g{}`)
	for _, bad := range []string{`[]`, `[{"f": {}, "g": {}}]`, `[{"f": 1}]`, `{"f": {}}`} {
		text := "<|tools_prefix|>" + bad + "<|tools_suffix|>"
		check(t, "apertus", offered, text, describe([]Event{{Kind: Damaged, Text: text, Err: ErrCall}}))
	}
	check(t, "nemotron", offered, `<toolcall> {"name": "f", "arguments": {"a": 1}} </toolcall>`, `f{"a":1}`)
	check(t, "nemotron", offered,
		`x<TOOLCALL>[{"name": "f", "arguments": {"a": "</TOOLCALL>"}}, {"name": "g", "arguments": {}}]</TOOLCALL> y`,
		`C"x" f{"a":"</TOOLCALL>"} g{} C" y"`)
}

func TestSeed(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{
			"<seed:think>hm</seed:think>Let me look.\n<seed:tool_call>\n<function=get_weather>\n<parameter=city>Rome\nItaly" +
				"</parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>",
			`T"hm" C"Let me look." get_weather{"city":"Rome\nItaly","days":2}`,
		},
		{
			"<seed:tool_call>\n<function=f>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=g>\n</function>\n" +
				"</seed:tool_call>", `f{} g{}`,
		},
		// The template writes lists and booleans as Python does.
		{
			"<seed:tool_call><function=get_weather><parameter=list>['a', {'b': True}, None]</parameter><parameter=wet>True" +
				"</parameter></function></seed:tool_call>", `get_weather{"list":["a",{"b":true},null],"wet":true}`,
		},
		{
			"<seed:tool_call><function=f><parameter=a></seed:tool_call></parameter></function></seed:tool_call>",
			`f{"a":"</seed:tool_call>"}`,
		},
		{
			"<seed:think><seed:cot_budget_reflect>Now.</seed:cot_budget_reflect></seed:think>yes",
			`T"Now.</seed:cot_budget_reflect>" C"yes"`,
		},
		{"<seed:tool_call>oops</seed:tool_call>", `C"<seed:tool_call>oops</seed:tool_call>"`},
	} {
		check(t, "seed-oss", offered, c.in, c.want)
	}
	const prompt = "<seed:bos>assistant\n<seed:think><seed:cot_budget_reflect>"
	if !Opens("seed-oss", Tags{}, prompt) || Opens("seed-oss", Tags{}, prompt+"</seed:cot_budget_reflect></seed:think>") {
		t.Error("a thinking budget of 0 opens the thinking")
	}
}

func TestOlmo3(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{
			"<function_calls>get_weather(city=\"San Francisco\", days=3)\nf()\ng(a=[1, {\"b\": null}], c=true)</function_calls>",
			`get_weather{"city":"San Francisco","days":3} f{} g{"a":[1,{"b":null}],"c":true}`,
		},
		{`<function_calls>f(a='it\'s', b=None, c=True)</function_calls>`, `f{"a":"it's","b":null,"c":true}`},
		{`<function_calls>f(a={'x': [1, (2, 'y')], 'z': {}})</function_calls>`, `f{"a":{"x":[1,[2,"y"]],"z":{}}}`},
		{`<function_calls>f(a="\u00e9\ud83d\ude00\t\/", b='\u00e9\ud83d\ude00\q')</function_calls>`,
			`f{"a":"\u00e9\ud83d\ude00\t\/","b":"é😀\\q"}`},
		{`<function_calls>[f(a=1), g()]</function_calls>`, `f{"a":1} g{}`},
		{`<function_calls>f(a="</function_calls>")</function_calls> x`, `f{"a":"</function_calls>"} C"x"`},
		{"<function_calls>\nf(a=\"two\nlines\")\n</function_calls>", `f{"a":"two\nlines"}`},
		{`<function_calls>f(a=1`, `I"<function_calls>f(a=1"`},
		{"<function_calls>f(a=1)\n</func", `f{"a":1}`},
		{`<function_calls></function_calls>`, `D"<function_calls></function_calls>"`},
		{`<function_calls>f(1)</function_calls>`, `D"<function_calls>f(1)</function_calls>"`},
		{`<function_calls>f(a={1: 2})</function_calls>`, `D"<function_calls>f(a={1: 2})</function_calls>"`},
		{`<function_calls>f(a={'b' 2})</function_calls>`, `D"<function_calls>f(a={'b' 2})</function_calls>"`},
		{`<function_calls>f(a=['b' 2])</function_calls>`, `D"<function_calls>f(a=['b' 2])</function_calls>"`},
	} {
		check(t, "olmo3", offered, c.in, c.want)
	}
	deep := "<function_calls>f(a=" + strings.Repeat("['", 100_000) + ")</function_calls>"
	if _, err := feed(t, mustNew(t, "olmo3", offered), deep); !errors.Is(err, ErrCall) {
		t.Errorf("error %v", err)
	}
	deep = "<function_calls>f(a=" + strings.Repeat("[True, ", 100_000) + ")</function_calls>"
	if _, err := feed(t, mustNew(t, "olmo3", offered), deep); !errors.Is(err, ErrCall) {
		t.Errorf("error %v", err)
	}
}

func TestHunyuanSolarErnieDots(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"hunyuan", "<think>\nhm\n</think>\n<answer>\nyes\n</answer>", `T"hm" C"yes"`},
		{
			"hunyuan", "<answer><tool_calls>[{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_calls>\"}}, {\"name\": \"g\", " +
				"\"arguments\": {}}]</tool_calls></answer>", `f{"a":"</tool_calls>"} g{}`,
		},
		{"hunyuan", `<tool_calls>[]</tool_calls>`, `D"<tool_calls>[]</tool_calls>"`},
		{
			"solar-open", "<|think|>hm<|end|><|begin|>assistant<|content|>Let me look.<|end|><|begin|>assistant<|tool_calls|>" +
				"<|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>f<|tool_call:args|>{\"a\": 1}<|tool_call:end|>" +
				"<|tool_call:begin|>f5<|tool_call:name|>g<|tool_call:args|>{}<|tool_call:end|><|calls|>",
			`T"hm" C"Let me look." f{"a":1}#a1b2c3d4e5 g{}#f5`,
		},
		{"solar-open", "<|content|>yes<|flush|>", `C"yes"`},
		{"solar-open", "<|tool_call:begin|>0<|tool_call:name|>f<|tool_call:end|>",
			`D"<|tool_call:begin|>0<|tool_call:name|>f<|tool_call:end|>"`},
		{"solar-open", "<|tool_call:begin|>0<|tool_call:name|>f<|tool_call:args|>",
			`I"<|tool_call:begin|>0<|tool_call:name|>f<|tool_call:args|>"`},
		{"solar-open", "<|tool_call:begin|>0<|tool_call:name|>f<|tool_call:args|>[1]<|tool_call:end|>",
			`D"<|tool_call:begin|>0<|tool_call:name|>f<|tool_call:args|>[1]<|tool_call:end|>"`},
		{"ernie4.5", "<think>abc\n</think>\n\n<response>\nyes\n</response>\n\n\n<tool_call>\n{\"name\": \"f\", " +
			"\"arguments\": {}}\n</tool_call>\n", `T"abc" C"yes" f{}`},
		{
			"dots", "<dots_function_call>\n<invoke name=\"get_weather\">\n<parameter name=\"days\">2</parameter>\n</invoke>\n" +
				"<invoke name=\"f\">\n</invoke>\n</dots_function_call>", `get_weather{"days":2} f{}`,
		},
		{"dots", `<dots_function_call>{"name": "f", "arguments": {"a": 1}}</dots_function_call>`, `f{"a":1}`},
	} {
		check(t, c.name, offered, c.in, c.want)
	}
}
