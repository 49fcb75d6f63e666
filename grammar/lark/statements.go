package lark

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
)

// statement parses a line that begins with %.
func (p *parser) statement() {
	s := p.next
	switch s.text {
	case "%ignore":
		p.advance()
		p.ignored = append(p.ignored, p.alternatives())
	case "%import":
		p.advance()
		p.imports()
	case "%llguidance":
		p.options()
	default:
		p.unsupported(s.at, s.text)
	}
}

// imports parses common.NAME, common.NAME -> OTHER and common (NAME, OTHER).
func (p *parser) imports() {
	at := p.next.at
	if library := p.advance().text; library != "common" {
		p.unsupported(at, "imports from "+expr.Clip(library)+" instead of common")
		return
	}
	add := func(name, as string) {
		if body := commonTerminal(name); body != nil {
			p.define(&definition{name: as, terminal: true, body: body, at: at})
		} else {
			p.fail(expr.ErrUnsupported, at, "common.%s of a lark grammar; there are %s", expr.Clip(name),
				strings.Join(commonNames(), ", "))
		}
	}
	if p.take("(") {
		for p.err == nil {
			name := p.advance().text
			add(name, name)
			if !p.take(",") {
				break
			}
		}
		p.expect(")")
		return
	}
	p.expect(".")
	name := p.advance().text
	as := name
	if p.take("->") {
		as = p.advance().text
	}
	add(name, as)
}

// attributes parses [lazy, suffix="x", capture].
func (p *parser) attributes(d *definition) {
	for p.err == nil {
		name := p.advance()
		var value *node
		if p.take("=") {
			if p.next.kind == number {
				value = &node{text: p.advance().text}
			} else {
				value = p.value()
			}
		}
		switch {
		case name.text == "lazy" && value == nil:
			d.lazy = true
		case name.text == "suffix" && value != nil:
			d.suffix = value
		case name.text == "capture" || name.text == "stop_capture": // of the caller, not of the language
		case name.text == "stop":
			p.fail(expr.ErrUnsupported, name.at, "the attribute stop of a lark grammar, which hides text; use suffix")
		default:
			p.unsupported(name.at, "the attribute "+expr.Clip(name.text))
		}
		if !p.take(",") {
			break
		}
	}
	p.expect("]")
}

// options parses %llguidance and its JSON object.
func (p *parser) options() {
	s := p.next
	from := p.at
	length, err := jsonLength(p.source[from:])
	if err != nil {
		p.fail(expr.ErrInvalid, s.at, "after %s: %v", s.text, err)
		return
	}
	p.at = from + length
	p.advance()
	p.checkOptions(s, p.source[from:from+length])
}

// checkOptions accepts the options of %llguidance that do not change the language.
func (p *parser) checkOptions(s symbol, value string) {
	var options map[string]any
	if err := json.Unmarshal([]byte(value), &options); err != nil {
		p.fail(expr.ErrInvalid, s.at, "the options of %%llguidance: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if set, _ := options[name].(bool); set && name != "no_forcing" {
			p.unsupported(s.at, "the option "+expr.Clip(name))
		}
	}
}
