package parse

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Feed returns text as soon as it is certain.
func TestStreaming(t *testing.T) {
	p := mustNew(t, "qwen3.5", offered)
	for _, c := range []struct{ in, want string }{
		{"Hel", `C"Hel"`},
		{"lo ", `C"lo"`},
		{"you", `C" you"`},
		{"\n\n<tool", ``},
		{"s>", `C"\n\n<tools>"`},
		{"gr\xc3", `C"gr"`},
		{"\xbc\xf0\x9f", `C"ü"`},
		{"\x98\x80 <tool_call>\n<function=f>", `C"😀"`},
		{"</function>\n</tool_call", ``},
		{">", `f{}`},
		{"\n\n", ``},
		{"x", `C"\n\nx"`},
		{" ", ``},
	} {
		if got := describe(p.Feed(c.in)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
	}
	rest, err := p.Close()
	if got := describe(rest); got != `C" "` || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	o := offered
	o.MaxCall = 100
	long := `<tool_call>{"name": "f", "arguments": {"a": "` + strings.Repeat("x", 200) + `"}}</tool_call>`
	got, err := feed(t, mustNew(t, "hermes", o), "a "+long+" b")
	if !errors.Is(err, ErrCall) || len(got) != 3 || got[1].Kind != Damaged ||
		got[0].Text+got[1].Text+got[2].Text != "a "+long+" b" {
		t.Errorf("%s, %v", describe(got), err)
	}
	check(t, "hermes", o, `<tool_call>{"name": "f"}</tool_call>`, "f{}")
	for pad := range 4 { // the limit splits no character
		check(t, "hermes", o, `<tool_call>{"`+strings.Repeat("x", pad)+strings.Repeat("😀", 40),
			`D"<tool_call>" C"{\"`+strings.Repeat("x", pad)+strings.Repeat("😀", 40)+`"`)
	}

	// White space is held back only up to maxSpace.
	p := mustNew(t, "hermes", Options{})
	n := 0
	for range 100 {
		for _, e := range p.Feed(strings.Repeat(" ", 10_000)) {
			n += len(e.Text)
		}
		if m := p.(*machine); cap(m.space)+cap(m.text)+cap(m.cand) > 4*maxSpace {
			t.Fatalf("the parser holds %d bytes", cap(m.space)+cap(m.text)+cap(m.cand))
		}
	}
	rest, err := p.Close()
	for _, e := range rest {
		n += len(e.Text)
	}
	if n != 1_000_000 || err != nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

// others returns the tags of a format that are not in its lists.
func (f *format) others() []string {
	return []string{f.think.Open, f.think.Close, strings.TrimSpace(f.name), f.lead, f.frame.Open, f.frame.Close}
}

// lost returns the part of text that is missing in out, or "" if only white space and tags are missing. It compares
// bytes, because a tag may follow an incomplete character.
func lost(f *format, text, out string) string {
	drop := slices.Concat(f.control, f.around, f.noise, f.others())
	for _, form := range f.forms {
		drop = append(drop, form.open, form.tag)
	}
	// came[i] has the lengths of output that text[:i] can produce. A tag in the text may have been dropped or kept.
	came := make([]map[int]bool, len(text)+1)
	reach := func(i, j int) {
		if came[i] == nil {
			came[i] = map[int]bool{}
		}
		came[i][j] = true
	}
	reach(0, 0)
	far := 0
	for i := range len(text) {
		for j := range came[i] {
			far = i
			if isSpace(text[i]) {
				reach(i+1, j)
			}
			if j < len(out) && out[j] == text[i] {
				reach(i+1, j+1)
			}
			for _, tag := range drop {
				if tag != "" && strings.HasPrefix(text[i:], tag) {
					reach(i+len(tag), j)
				}
			}
		}
	}
	switch {
	case came[len(text)][len(out)]:
		return ""
	case len(came[len(text)]) > 0:
		return "something was added"
	}
	return text[far:]
}

// The events do not depend on how the text is split. Nothing is added, and text outside of calls is not lost.
func FuzzParsers(f *testing.F) {
	for i, name := range Names() {
		for _, s := range spellings {
			f.Add(uint8(i), s.name == name, s.open+"hm ü"+s.close+"a "+s.call(`"x"`)+"\n"+s.call(`[{"b":1}]`)+" b"+s.cut,
				uint16(i))
		}
	}
	f.Add(uint8(3), true, tags("<tool_call>f k)KV(v)V</tool_call>"), uint16(9))
	f.Add(uint8(slices.Index(Names(), "granite")), true, "<think>hm \xc3\x83\x83</think>\xbc\xb4a <thi</think>nk> b",
		uint16(9))
	f.Fuzz(func(t *testing.T, which uint8, thinking bool, text string, cut uint16) {
		name := Names()[int(which)%len(Names())]
		o := offered
		o.Thinking = thinking
		o.MaxCall = 1 + int(cut)
		whole, err := feed(t, mustNew(t, name, o), text)
		at := 0
		if len(text) > 0 {
			at = int(cut) % len(text)
		}
		for _, pieces := range [][]string{bytesOf(text), {text[:at], text[at:]}} {
			got, err2 := feed(t, mustNew(t, name, o), pieces...)
			if describe(got) != describe(whole) || fmt.Sprint(err) != fmt.Sprint(err2) {
				t.Errorf("%s %q in %d pieces:\n got %s, %v\nwant %s, %v", name, text, len(pieces), describe(got), err2,
					describe(whole), err)
			}
		}
		size, calls := 0, false
		var all strings.Builder
		for _, e := range whole {
			size += len(e.Text) + len(e.Call.Name) + len(e.Call.Arguments) + len(e.Call.ID)
			all.WriteString(e.Text)
			calls = calls || e.Kind == Call
		}
		if size > 8*len(text)+1000 {
			t.Errorf("%s: %d bytes became %d", name, len(text), size)
		}
		if formats[name].parser != nil {
			return // headers are not text
		}
		if rest := lost(formats[name], text, all.String()); rest != "" && !calls {
			t.Errorf("%s: text was lost at %q:\n got %q\nfrom %q", name, rest, all.String(), text)
		}
	})
}
