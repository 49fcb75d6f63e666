package parse

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recipe builds texts of a format from its tags, whole, cut, repeated and quoted, from calls and from prose. All text
// that is not a part of a tag has words that occur nowhere else.
type recipe struct {
	s     spelling
	tags  []string
	words int
}

var innerTags = regexp.MustCompile(`</?[^<>\n]*>|\[[A-Z_/]+\]`)

func newRecipe(s spelling) *recipe {
	f := formats[s.name]
	all := slices.Concat(f.control, f.around, f.noise, f.others(),
		innerTags.FindAllString(s.open+s.close+s.call(`"x"`), -1))
	for _, form := range f.forms {
		all = append(all, form.open, form.tag)
	}
	all = slices.DeleteFunc(all, func(t string) bool { return len(t) < 2 || strings.Contains(t, "function=f") })
	slices.Sort(all)
	return &recipe{s: s, tags: slices.Compact(all)}
}

// word returns a new word.
func (r *recipe) word() string {
	r.words++
	return fmt.Sprintf("q%dx", r.words)
}

// call returns a call of f, whose only argument is a new word, under a new name.
func (r *recipe) call(value string) string {
	key := r.word()
	c := r.s.call(`"` + value + `"`)
	for _, around := range []string{`"%s"`, "=%s>", ">%s<", "(%s=", "{%s:", `="%s"`} {
		c = strings.Replace(c, fmt.Sprintf(around, "a"), fmt.Sprintf(around, key), 1)
	}
	return c
}

// piece returns the piece of a text that n chooses.
func (r *recipe) piece(n int) string {
	tag := r.tags[n%len(r.tags)]
	if strings.Contains(tag, "parameter") && !strings.Contains(tag, "/") {
		tag = strings.NewReplacer("=a>", "="+r.word()+">", `"a"`, `"`+r.word()+`"`).Replace(tag)
	}
	switch n / len(r.tags) % 12 {
	case 0, 1:
		return tag
	case 2:
		return tag[:1+n%(len(tag)-1)]
	case 3:
		return "`" + tag + "`"
	case 4:
		return ` "` + tag + `" ` + r.word()
	case 5:
		return tag + " " + tag
	case 6:
		return "\n```\n" + tag + r.word() + "\n```\n"
	case 7:
		return r.call(r.word())
	case 8:
		return r.call(strings.NewReplacer(`"`, `\"`, "\n", `\n`).Replace(r.word() + tag + r.word()))
	case 9:
		c := r.call(r.word())
		return c[:n%len(c)]
	case 10:
		return "\n" + r.word() + " < " + r.word() + "\n"
	}
	return " " + r.word() + " "
}

// check parses a text of the recipe, whole and in pieces.
func (r *recipe) check(t *testing.T, o Options, text string, at int) {
	t.Helper()
	whole, err := feed(t, mustNew(t, r.s.name, o), text)
	at %= len(text) + 1
	for _, pieces := range [][]string{bytesOf(text), {text[:at], text[at:]}} {
		got, err2 := feed(t, mustNew(t, r.s.name, o), pieces...)
		if describe(got) != describe(whole) || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("%s %q in %d pieces:\n got %s, %v\nwant %s, %v", r.s.name, text, len(pieces), describe(got), err2,
				describe(whole), err)
		}
	}
	var out strings.Builder
	for _, e := range whole {
		fmt.Fprintln(&out, e.Text, e.Call.Name, e.Call.ID, string(e.Call.Arguments))
		if e.Kind == Call && len(o.Tools) == 0 {
			t.Fatalf("%s %q: a call without tools: %s", r.s.name, text, describe(whole))
		}
	}
	for _, word := range regexp.MustCompile(`q\d+x`).FindAllString(text, -1) {
		if !strings.Contains(out.String(), word) {
			t.Fatalf("%s %q: %s is lost: %s", r.s.name, text, word, describe(whole))
		}
	}
}

// build checks the text that bytes choose. The first one chooses the format and the options, the last where to split.
func build(t *testing.T, choices []byte) {
	if len(choices) < 2 {
		return
	}
	first := int(choices[0])
	r := newRecipe(lossless[first%len(lossless)])
	o := offered
	if o.Thinking = first&1 != 0; first&6 == 6 {
		o.Tools = nil
	}
	var text strings.Builder
	for i := 1; i+1 < len(choices); i += 2 {
		text.WriteString(r.piece(int(choices[i])<<8 | int(choices[i+1])))
	}
	r.check(t, o, text.String(), int(choices[len(choices)-1]))
}

// lossless are the formats of these texts.
var lossless = append(slices.Clone(spellings), spelling{
	"harmony", "<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>",
	func(a string) string {
		return "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": " + a + "}<|call|>"
	}, `<|channel|>commentary to=functions.f`,
})

// No text is lost but tags, and the events do not depend on how the text is split, whatever is mixed.
func TestLossless(t *testing.T) {
	n := 100
	if testing.Short() {
		n = 20
	}
	for i, s := range lossless {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, uint64(i)))
			for range n {
				choices := make([]byte, 2+2*r.IntN(12))
				for j := range choices {
					choices[j] = byte(r.Uint32())
				}
				for int(choices[0])%len(lossless) != i {
					choices[0]++
				}
				build(t, choices)
			}
		})
	}
}

// FuzzLossless mixes tags, calls and prose as the bytes say.
func FuzzLossless(f *testing.F) {
	r := rand.New(rand.NewPCG(8, 0))
	for i := range lossless {
		choices := make([]byte, 20)
		for j := range choices {
			choices[j] = byte(r.Uint32())
		}
		choices[0] = byte(i)
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) < 200 {
			build(t, choices)
		}
	})
}
