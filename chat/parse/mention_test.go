package parse

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat/parse/notation"
)

// mentions are texts that contain the tags of a format and no call: tags within prose, repeated, quoted, cut, with a
// body that is none, and an example of a tool that is not offered.
func (s spelling) mentions() []string {
	f := formats[s.name]
	out := []string{"plain", "`" + strings.TrimSpace(s.call(`"x"`)) + "`",
		"\n```\n" + s.example() + "\n```\n", "the closing `" + f.think.Close + "` tag", `and "` + f.think.Open + `"`}
	tags := []string{f.lead}
	for _, form := range f.forms {
		tags = append(tags, form.open, form.open+form.tag+form.tag, "\n"+form.open+"\n")
	}
	for _, t := range tags {
		if t != "" {
			out = append(out, "the "+t+" tag", t+" "+t, "`"+t+"`", "("+t+")", t[:len(t)-1], t+". Then {}")
		}
	}
	return slices.DeleteFunc(out, func(t string) bool { return strings.Contains(t, "``") || strings.Contains(t, `""`) })
}

// example returns a call of a tool that is not offered.
func (s spelling) example() string {
	c := s.call(`"y"`)
	at := regexp.MustCompile(`\bf\b`).FindStringIndex(c)
	return c[:at[0]] + "example" + c[at[1]:]
}

// said returns the text of a kind, and the number of calls.
func said(events []Event) (content, thinking string, calls int) {
	for _, e := range events {
		switch e.Kind {
		case Call:
			calls++
		case Thinking:
			thinking += e.Text
		default:
			content += e.Text
		}
	}
	return content, thinking, calls
}

// Thinking and content that only mention tags stay whole, and a real call after them is one.
func TestMentions(t *testing.T) {
	for i, s := range spellings {
		r := rand.New(rand.NewPCG(5, uint64(i)))
		all := s.mentions()
		for n := 0; n < 60+len(all); n++ {
			parts := []string{"Hm,"}
			if n < len(all) {
				parts = append(parts, all[n])
			}
			for len(parts) < 2+n/len(all)*3 {
				parts = append(parts, all[r.IntN(len(all))])
			}
			text := strings.Join(parts, " ") + " end."
			thought, think := "", ""
			if s.open != "" {
				thought, think = text, s.open+text+s.close
			}
			whole := think + "Now " + text + " " + s.call(`"x"`)
			for _, pieces := range [][]string{{whole}, bytesOf(whole)} {
				events, _ := feed(t, mustNew(t, s.name, offered), pieces...)
				content, thinking, calls := said(events)
				if content != "Now "+text || thinking != thought || calls != 1 ||
					!strings.HasSuffix(describe(events), s.want(`"x"`)) {
					t.Errorf("%s %q:\n got %s", s.name, whole, describe(events))
					n = 1000
				}
			}
		}
	}
}

// A call that an unfinished example precedes in the thinking is found after it.
func TestCutMentions(t *testing.T) {
	for _, s := range spellings {
		if s.open == "" {
			continue
		}
		events, _ := feed(t, mustNew(t, s.name, offered), s.open+"So: "+s.cut+"x"+s.close+"Fine."+s.call(`"x"`))
		want := describe([]Event{{Kind: Thinking, Text: "So: " + s.cut + "x"}, {Kind: Content, Text: "Fine."}})
		want += " " + s.want(`"x"`)
		if got := describe(events); got != want {
			t.Errorf("%s:\n got %s\nwant %s", s.name, got, want)
		}
	}
}

// A call of a tool that is not offered is one in the content: the client can tell the model so.
func TestUnknownTools(t *testing.T) {
	for _, s := range spellings {
		events, _ := feed(t, mustNew(t, s.name, offered), "So: "+s.example())
		if content, _, calls := said(events); calls != 1 || content != "So:" {
			t.Errorf("%s %q: %d calls, %q", s.name, s.example(), calls, content)
		}
	}
}

// A call before the end of the thinking is one, the thinking goes on after it, and no tag of it shows.
func TestCallsInThinking(t *testing.T) {
	for _, s := range spellings {
		if s.open == "" {
			continue
		}
		call, written := s.want(`"x"`), strings.TrimSpace(s.call(`"x"`))
		for _, c := range []struct{ in, want string }{
			{s.open + "hm\n" + s.call(`"x"`) + s.close, `T"hm" ` + call},
			{s.open + "hm\n" + written + "\nwait" + s.close + "yes", `T"hm" ` + call + ` T"\nwait" C"yes"`},
			{s.open + "hm\n" + s.call(`"x"`) + s.close + s.call(`"x"`), `T"hm" ` + call}, // the same call
			{s.open + "hm\n" + s.call(`"x"`) + s.close + s.call(`"y"`), `T"hm" ` + call + " " + s.want(`"y"`)},
			{s.open + s.call(`"x"`) + s.call(`"x"`) + s.close, call + " " + call},
			{s.open + s.example() + s.close + "yes", ""},
		} {
			events, err := feed(t, mustNew(t, s.name, offered), c.in)
			if got := describe(events); c.want != "" && got != c.want || err != nil {
				t.Errorf("%s %q:\n got %s, %v\nwant %s", s.name, c.in, got, err, c.want)
			}
			if content, _, calls := said(events); c.want == "" && (content != "yes" || calls != 0) {
				t.Errorf("%s %q: %s", s.name, c.in, describe(events))
			}
		}
	}
}

// Without tools, all output is content or thinking, whatever it looks like.
func TestNoTools(t *testing.T) {
	for _, s := range lossless {
		text := "a " + s.call(`"x"`) + "\n" + s.cut
		think := s.open + "hm" + s.close
		if s.open == "" {
			think = ""
		}
		events, err := feed(t, mustNew(t, s.name, Options{}), think+text)
		content, thinking, calls := said(events)
		if s.name == "solar-open" { // its tags of messages are none of the text
			content = strings.TrimPrefix(content, "<|content|>")
		}
		want := text
		if s.name == "harmony" {
			want = "a <|start|>assistant" + callF + "{\"a\": \"x\"}\n" + s.cut
		}
		if s.open != "" != (thinking == "hm") || content != want || calls != 0 || err != nil {
			t.Errorf("%s:\n got %s, %v", s.name, describe(events), err)
		}
	}
	check(t, "llama3", Options{}, `{"name": "f", "parameters": {}}`, `C"{\"name\": \"f\", \"parameters\": {}}"`)
	check(t, "llama3", Options{}, `<|python_start|>[f()]<|python_end|>`, `C"<|python_start|>[f()]<|python_end|>"`)
}

// Arguments may contain all tags of a call, alone, as an example and repeated, up to the argument's own end.
func TestQuotedTags(t *testing.T) {
	for _, s := range spellings {
		f := formats[s.name]
		example := s.example()
		values := []string{example, "So:\n" + example + "\nAnd:\n" + example + "\nend", "the " + f.think.Close + " tag"}
		for _, tag := range append(innerTags.FindAllString(s.call(`"x"`), -1), f.forms[0].open, f.forms[0].tag) {
			if s.name == "gemma4" && tag == notation.GemmaQuote || tag == "" {
				continue // which ends every string
			}
			values = append(values, "the "+tag+" tag", tag+tag+" x")
			if !strings.Contains(tag, "/parameter") && !strings.Contains(tag, "/｜DSML｜parameter") { // else it is repeated
				values = append(values, "ends with "+tag)
			}
		}
		for _, v := range values {
			if s.name == "gemma4" && strings.Contains(v, notation.GemmaQuote) {
				continue
			}
			text := string(notation.Quote(v))
			got, err := feed(t, mustNew(t, s.name, offered), s.call(text)+" x")
			if describe(got) != s.want(text)+` C"x"` || err != nil {
				t.Errorf("%s %q:\n got %s, %v", s.name, s.call(text), describe(got), err)
			}
		}
	}
}
