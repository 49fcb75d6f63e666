package parse

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// hostile is a text of some size.
type hostile struct {
	name                string
	before, unit, after string
}

func (h hostile) of(size int) string {
	return h.before + strings.Repeat(h.unit, max(size/len(h.unit), 1)) + h.after
}

// hostileTexts repeat what a format looks for.
func hostileTexts(f *format) (list []hostile) {
	many := func(name, before, unit, after string) {
		if unit != "" {
			list = append(list, hostile{name, before, unit, after})
		}
	}
	for _, unit := range []string{"a", " ", "\n", "é", `"`, "`", "```json\n", "{", "[", "(", "<", `{"a":1}`, "a, ", `\`} {
		many("only "+unit, "", unit, "")
	}
	for _, tag := range slices.Concat(newMachine(f, offered).texts(), glmCycle[:], []string{functionOpen, functionClose,
		parameterOpen, parameterClose, solarName, solarArgs, deepSeekMark, harmonyAnalysis, harmonyEnd}) {
		many("tags "+tag, "", tag, "")
		many("tags and text "+tag, "", "a "+tag+"\n", "")
	}
	forms := slices.Clone(f.forms)
	if f.bare != nil {
		forms = append(forms, *f.bare)
	}
	for name, body := range map[string][2]string{
		"object": {`{"name":"f","arguments":{"k":"`, `"}}`}, "list": {`[{"name":"f","arguments":{"k":"`, `"}}]`},
		"function": {"<function=f><parameter=k>", "</parameter></function>"}, "python": {`f(k="`, `")`},
		"glm": {"f<arg_key>k</arg_key><arg_value>", "</arg_value>"}, "named": {`f{"k":"`, `"}`},
		"gemma": {`call:f{k:<|"|>`, `<|"|>}`}, "fence": {"```json\n{\"name\":\"f\",\"arguments\":{\"k\":\"", "\"}}\n```"},
		"keys": {`{"name":"f","arguments":{"k":1`, `}}`}, "none": {"", ""},
	} {
		for _, form := range forms {
			units := []string{"a", form.tag}
			units = append(units, runtest.Pick(nil, []string{" ", `\"`, "<", form.open, glmValueEnd, `,"k":1`, "["})...)
			for _, unit := range units {
				many(form.open+" "+name+" of "+unit, form.open+body[0], unit, body[1]+form.tag)
				many(form.open+" "+name+" of "+unit+", open", form.open+body[0], unit, "")
			}
			many("many "+form.open+" "+name, "", form.open+body[0]+"x"+body[1]+form.tag+"\n", "")
		}
	}
	return list
}

// A parser's work grows as the text does, whatever a model writes, a few bytes at a time.
func TestGrowth(t *testing.T) {
	for i, name := range Names() {
		f, _ := lookup(name)
		list := hostileTexts(f)
		every := runtest.Pick(3, 1) // the formats share most of their code
		for j := i % every; j < len(list); j += every {
			t.Run(name+"/"+list[j].name, func(t *testing.T) {
				runtest.Linear(t, 8_000, func(size int) func() {
					text, p := list[j].of(size), mustNew(t, name, offered)
					return func() {
						for at := 0; at < len(text); at += 16 {
							p.Feed(text[at:min(at+16, len(text))])
						}
						_, _ = p.Close()
					}
				})
			})
		}
	}
}
