package parse

import (
	"strings"
	"testing"
)

// Tags that close thinking are none of the text where nothing else can be meant: at its start, directly after thinking
// or a call, and, of a model that did not say where its thinking began, on a line of their own.
func TestStrayTags(t *testing.T) {
	const call = `<tool_call>{"name": "f"}</tool_call>`
	for _, c := range []struct{ in, want string }{
		{"</think>x", `C"x"`},
		{"\n\n</think>\n\nx", `C"x"`},
		{"<think>a</think>\n</think>\nb", `T"a" C"b"`},
		{call + "</think>\nb", `f{} C"b"`},
		{call + "\n<think>a</think>b", `f{} T"a" C"b"`},
		{"a thought\n</think>\n\nb", `C"a thought\nb"`},
		{"a thought\n</think>", `C"a thought"`},
		{"a thought\n </think> \nb", `C"a thought\n </think> \nb"`},
		{"a </think> b", `C"a </think> b"`},
		{"a\n</think> b", `C"a\n</think> b"`},
		{"a\n```\n</think>\n```\nb", `C"a\n` + "```" + `\n</think>\n` + "```" + `\nb"`},
		{"<think>a</think>b\n</think>\nc", `T"a" C"b\n</think>\nc"`},
		{"<think>\"</think>", `T"\""`},
		{"<think>say '</think>' now</think>b", `T"say '</think>' now" C"b"`},
		{"<think>say \"so\"</think>b", `T"say \"so\"" C"b"`},
		{"<think>say \"</think>b", `T"say \"" C"b"`},
	} {
		check(t, "hermes", offered, c.in, c.want)
	}
}

// Text before and after a dropped tag does not run together, and has no more white space than it had.
func TestSeams(t *testing.T) {
	call := hermes(`1`)
	long := strings.Repeat(" ", 2*maxGap)
	for _, c := range []struct{ in, want string }{
		{"a." + call + "b", `C"a." f{"a":1} C"\n\nb"`},
		{"a. " + call + "b", `C"a." f{"a":1} C" b"`},
		{"a. " + call + "\nb", `C"a." f{"a":1} C"\nb"`},
		{"a.\n\n" + call + "\n" + call + "b", `C"a." f{"a":1} f{"a":1} C"\nb"`},
		{"a." + call + long + "b", `C"a." f{"a":1} C"` + long[:maxGap] + `b"`},
		{"a. " + call + " ", `C"a." f{"a":1}`},
		{"a." + call + "<tool_call></tool_call>", `C"a." f{"a":1} C"\n\n" D"<tool_call></tool_call>"`},
		{call + "\nb", `f{"a":1} C"b"`},
	} {
		check(t, "hermes", offered, c.in, c.want)
	}
	check(t, "harmony", offered, headers("C(one)EC(two)E"+callF+"{})LF( three"), `C"one\n\ntwo" f{} C" three"`)
}

// A frame's tags are none of the content, but the content may contain them.
func TestFrames(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"granite", "<think>a</think>\n<response>b</response>\n", `T"a" C"b"`},
		{"granite", "<think>a</think> <response>b", `T"a" C"b"`},
		{"granite", "<response>b</response>", `C"<response>b</response>"`}, // no thinking, so no frame
		{"granite", "<think>a</think><response>a <response>b</response> c</response>",
			`T"a" C"a <response>b</response> c"`},
		{"granite", "<think>a</think>the <response> tag", `T"a" C"the <response> tag"`},
		{"granite", "<think>a</think><response>`</response>` b</response>", "T\"a\" C\"`</response>` b\""},
		{"granite", "<think>a</think><response>x" + `<|tool_call|>[{"name": "f", "arguments": {}}]</response>`,
			`T"a" C"x" f{}`},
		{"hunyuan", "<answer>\nb\n</answer>", `C"b"`},
		{"ernie4.5", "<think>a</think><response>b</response></response>", `T"a" C"b\n\n</response>"`},
	} {
		check(t, c.name, offered, c.in, c.want)
	}
}

// Repeated tags are none of the text if a call follows.
func TestRepeatedTags(t *testing.T) {
	for _, s := range spellings {
		form := formats[s.name].forms[0]
		call := strings.TrimSpace(s.call(`"x"`))
		at := strings.Index(call, form.open)
		check(t, s.name, offered, "a "+call[:at]+form.open+"\n"+call[at:]+form.tag+form.tag+" b",
			`C"a" `+s.want(`"x"`)+` C" b"`)
	}
}

// Text is processed again only so often, however many tags open no call. It stays whole.
func TestAgain(t *testing.T) {
	o := offered
	o.Thinking = true
	for name, piece := range map[string]string{
		"qwen3.5": "<tool_call><function=f><parameter=a>", "glm-4.7": "<tool_call>f<arg_key>a</arg_key><arg_value>",
		"gemma4": `<|tool_call>call:f{a:<|"|>`, "olmo3": `<function_calls>f(a=('`, "minimax": "<minimax:tool_call>\n",
	} {
		p := mustNew(t, name, o)
		text := strings.Repeat(piece, 3000)
		events, err := feed(t, p, text+Thinks(name).Close+"b")
		content, thinking, calls := said(events)
		if thinking != strings.TrimRight(text, "\n") || content != "b" || calls != 0 || err != nil {
			t.Errorf("%s: %d bytes of thinking, content %q, %d calls, %v", name, len(thinking), excerpt(content), calls, err)
		}
		if m := p.(*machine); m.again > maxAgain+5*m.fed || name == "qwen3.5" && !m.tired() {
			t.Errorf("%s: %d bytes of %d were processed again", name, m.again, m.fed)
		}
	}
	text := strings.Repeat("<|channel|>commentary to=f<|message|>{\"a\": \"", 3000)
	p := mustNew(t, "harmony", offered)
	events, _ := feed(t, p, text)
	content, _, calls := said(events)
	if h := p.(*harmony); strings.ReplaceAll(content, "\n\n", "") != text || calls != 0 || h.again == 0 ||
		h.again > 2*h.fed {
		t.Errorf("harmony: %d of %d bytes, %d calls; %d were processed again", len(content), len(text), calls, h.again)
	}
}
