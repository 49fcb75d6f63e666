package lark

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/syntax"
)

// statement parses a line that begins with %.
func (p *parser) statement() {
	s := p.Next
	switch s.Text {
	case "%ignore":
		p.Advance()
		p.ignored = append(p.ignored, p.Alternatives())
	case "%import":
		p.Advance()
		p.imports()
	case "%llguidance":
		p.options()
	default:
		p.unsupported(s.At, s.Text)
	}
}

// imports parses common.NAME, common.NAME -> OTHER and common (NAME, OTHER).
func (p *parser) imports() {
	at := p.Next.At
	if library := p.Advance().Text; library != "common" {
		p.unsupported(at, "imports from "+expr.Clip(library)+" instead of common")
		return
	}
	add := func(name, as string) {
		if body := commonTerminal(name); body != nil {
			p.define(&definition{name: as, terminal: true, body: body, at: at})
		} else {
			p.Fail(expr.ErrUnsupported, at, "common.%s of a lark grammar; there are %s", expr.Clip(name),
				strings.Join(commonNames(), ", "))
		}
	}
	if p.Take("(") {
		for p.Err == nil {
			name := p.Advance().Text
			add(name, name)
			if !p.Take(",") {
				break
			}
		}
		p.expect(")")
		return
	}
	p.expect(".")
	name := p.Advance().Text
	as := name
	if p.Take("->") {
		as = p.Advance().Text
	}
	add(name, as)
}

// attributes parses [lazy, suffix="x", capture].
func (p *parser) attributes(d *definition) {
	for p.Err == nil {
		name := p.Advance()
		var value *syntax.Node
		if p.Take("=") {
			if p.Next.Kind == number {
				value = &syntax.Node{Text: p.Advance().Text}
			} else {
				value = p.value()
			}
		}
		switch {
		case name.Text == "lazy" && value == nil:
			d.lazy = true
		case name.Text == "suffix" && value != nil:
			d.suffix = value
		case name.Text == "capture" || name.Text == "stop_capture": // of the caller, not of the language
		case name.Text == "stop":
			p.Fail(expr.ErrUnsupported, name.At, "the attribute stop of a lark grammar, which hides text; use suffix")
		default:
			p.unsupported(name.At, "the attribute "+expr.Clip(name.Text))
		}
		if !p.Take(",") {
			break
		}
	}
	p.expect("]")
}

// options parses %llguidance and its JSON object.
func (p *parser) options() {
	s := p.Next
	from := p.At
	length, err := jsonLength(p.Source[from:])
	if err != nil {
		p.Fail(expr.ErrInvalid, s.At, "after %s: %v", s.Text, err)
		return
	}
	p.At = from + length
	p.Advance()
	p.checkOptions(s, p.Source[from:from+length])
}

// checkOptions accepts the options of %llguidance that do not change the language.
func (p *parser) checkOptions(s syntax.Symbol, value string) {
	var options map[string]any
	if err := json.Unmarshal([]byte(value), &options); err != nil {
		p.Fail(expr.ErrInvalid, s.At, "the options of %%llguidance: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if set, _ := options[name].(bool); set && name != "no_forcing" {
			p.unsupported(s.At, "the option "+expr.Clip(name))
		}
	}
}
