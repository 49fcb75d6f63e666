package pdf

import (
	"bytes"
	"fmt"

	"github.com/ingotml/ingot/internal/limits"
)

// page paints a page and the forms on it.
func (p *painter) page(d dict) {
	f := p.file
	resources, _ := f.get(d["Resources"]).(dict)
	var content []byte
	kept := 0
	parts, ok := f.get(d["Contents"]).(array)
	if !ok {
		parts = array{d["Contents"]}
	}
	for _, part := range parts {
		s, ok := f.get(part).(*stream)
		if !ok || f.w.err != nil {
			continue
		}
		b := f.decode(s)
		content, kept = append(append(content, b...), '\n'), kept+len(b)
	}
	p.state = state{toPage: identity, stretch: 1}
	p.paint(content, resources, 0)
	f.w.release(kept)
	notes, _ := f.get(d["Annots"]).(array)
	for _, n := range notes {
		note, ok := f.get(n).(dict)
		if !ok || f.w.err != nil {
			continue
		}
		p.annotation(note)
	}
}

// annotation paints the appearance of a form's field or of another annotation.
func (p *painter) annotation(note dict) {
	f := p.file
	flags, _ := f.get(note["F"]).(number)
	const hidden, noView = 2, 32
	if int(flags)&(hidden|noView) != 0 || f.get(note["Subtype"]) == name("Popup") {
		return
	}
	looks, _ := f.get(note["AP"]).(dict)
	o := f.get(looks["N"])
	if states, ok := o.(dict); ok {
		which, _ := f.get(note["AS"]).(name)
		o = f.get(states[which])
	}
	s, ok := o.(*stream)
	if !ok {
		return
	}
	p.state = state{toPage: identity, stretch: 1}
	rect, box := f.numbers(note["Rect"]), f.numbers(s.dict["BBox"])
	if len(rect) >= 4 && len(box) >= 4 {
		p.toPage[4] = min(rect[0], rect[2]) - min(box[0], box[2])
		p.toPage[5] = min(rect[1], rect[3]) - min(box[1], box[3])
	}
	p.form(s, nil, 0)
}

// form paints a form.
func (p *painter) form(s *stream, outer dict, depth int) {
	f := p.file
	if depth > limits.PDFNesting {
		f.w.stop(fmt.Errorf("its forms are nested deeper than %d levels", limits.PDFNesting))
	}
	const perForm = 1 << 10
	if !f.w.spend(perForm) {
		return
	}
	resources, ok := f.get(s.dict["Resources"]).(dict)
	if !ok {
		resources = outer
	}
	before, line, text := p.state, p.line, p.text
	p.toPage = matrixOf(f.numbers(s.dict["Matrix"])).then(p.toPage)
	b := f.decode(s)
	p.paint(b, resources, depth)
	f.w.release(len(b))
	p.state, p.line, p.text = before, line, text
}

// paint follows operators.
func (p *painter) paint(content []byte, resources dict, depth int) {
	w, stack, marks, fonts := p.file.w, p.stack, p.marks, p.fonts
	p.stack, p.marks, p.fonts = nil, nil, map[name]*font{}
	ownFonts := int64(0)
	defer func() {
		w.release(perState*len(p.stack) + int(ownFonts))
		p.stack, p.marks, p.fonts = stack, marks, fonts
	}()
	l := &lexer{b: content, w: p.file.w}
	var operands []object
	for p.file.w.err == nil {
		o := l.object()
		op, ok := o.(word)
		switch {
		case !ok:
			const most = 64
			if len(operands) < most {
				operands = append(operands, o)
			}
			continue
		case op == end:
			return
		case op == "ID":
			skipPicture(l)
		case op == "Do":
			p.do(operands, resources, depth)
		case op == "Tf":
			ownFonts += p.setFont(operands, resources)
		case op == "BDC":
			p.begin(operands, resources)
		default:
			p.operator(string(op), operands)
		}
		operands = operands[:0]
	}
}

// skipPicture skips the data of a picture within the content.
func skipPicture(l *lexer) {
	from := l.at
	for {
		i := bytes.Index(l.b[l.at:], []byte("EI"))
		if i < 0 {
			l.at = len(l.b)
			break
		}
		at := l.at + i
		l.at = at + 2
		if isSpace(l.b[max(at-1, 0)]) && (l.at >= len(l.b) || isSpace(l.b[l.at])) {
			break
		}
	}
	l.w.spend(l.at - from)
}

// do paints an external object if it is a form.
func (p *painter) do(operands []object, resources dict, depth int) {
	if len(operands) == 0 {
		return
	}
	which, _ := operands[0].(name)
	objects, _ := p.file.get(resources["XObject"]).(dict)
	if s, ok := p.file.get(objects[which]).(*stream); ok && p.file.get(s.dict["Subtype"]) == name("Form") {
		p.form(s, resources, depth+1)
	}
}

// setFont is the operator Tf. It returns the memory that it keeps for the content that is painted.
func (p *painter) setFont(operands []object, resources dict) int64 {
	if len(operands) < 2 {
		return 0
	}
	f := p.file
	which, _ := operands[0].(name)
	p.size, _ = operands[1].(number)
	fonts, _ := f.get(resources["Font"]).(dict)
	r, shared := fonts[which].(ref)
	known, ok := f.fonts[r.num]
	if !shared {
		known, ok = p.fonts[which]
	}
	if ok {
		p.font = known
		return 0
	}
	p.font = nil
	free := f.w.free
	if d, ok := f.get(fonts[which]).(dict); ok {
		p.font = f.readFont(d)
	}
	if shared {
		f.fonts[r.num] = p.font
		return 0
	}
	p.fonts[which] = p.font
	return free - f.w.free
}

// begin is the operator BDC, which may say what the text of a part is.
func (p *painter) begin(operands []object, resources dict) {
	m := mark{}
	if len(operands) > 1 {
		properties, ok := operands[1].(dict)
		if which, named := operands[1].(name); named {
			all, _ := p.file.get(resources["Properties"]).(dict)
			properties, ok = p.file.get(all[which]).(dict)
		}
		if s, is := p.file.get(properties["ActualText"]).(text); is && ok {
			m = mark{replaced: true, text: tidy(decodeText(s))}
		}
	}
	const most = 64
	if len(p.marks) < most {
		p.marks = append(p.marks, m)
	}
}
