package pdf

import (
	"fmt"
	"math"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
)

// matrix is [a b c d e f] of ISO 32000-2, 8.3.3.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// then returns the matrix that applies m first.
func (m matrix) then(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

func (m matrix) apply(p point) point {
	return point{p.x*m[0] + p.y*m[2] + m[4], p.x*m[1] + p.y*m[3] + m[5]}
}

func matrixOf(list []float64) matrix {
	if len(list) < 6 {
		return identity
	}
	return matrix(list[:6])
}

// state is the graphics state as far as text needs it.
type state struct {
	toPage         matrix
	font           *font
	size           float64
	charGap, words float64
	stretch, rise  float64
	leading        float64
}

// painter follows the operators of a page and lays its text out.
type painter struct {
	file            *file
	layout          layout
	shown, unmapped int // glyphs

	state
	stack      []state
	line, text matrix
	marks      []mark
	fonts      map[name]*font // of the content that is painted, as far as they are no objects of their own
}

// mark is a marked part of the content.
type mark struct {
	replaced bool   // its text is another one
	text     string // that text, until it is shown
}

// operator follows an operator that needs no resources.
func (p *painter) operator(op string, operands []object) {
	n := func(i int) float64 {
		if i < len(operands) {
			v, _ := operands[i].(number)
			return v
		}
		return 0
	}
	switch op {
	case "q":
		if p.file.w.keep(perState) {
			p.stack = append(p.stack, p.state)
		}
	case "Q":
		if last := len(p.stack) - 1; last >= 0 {
			p.state, p.stack = p.stack[last], p.stack[:last]
			p.file.w.release(perState)
		}
	case "cm":
		p.toPage = matrix{n(0), n(1), n(2), n(3), n(4), n(5)}.then(p.toPage)
	case "BMC":
		p.begin(nil, nil)
	case "EMC":
		if last := len(p.marks) - 1; last >= 0 {
			p.marks = p.marks[:last]
		}
	case "BT":
		p.line, p.text = identity, identity
	case "Tc":
		p.charGap = n(0)
	case "Tw":
		p.words = n(0)
	case "Tz":
		p.stretch = n(0) / 100
	case "TL":
		p.leading = n(0)
	case "Ts":
		p.rise = n(0)
	case "Td":
		p.move(n(0), n(1))
	case "TD":
		p.leading = -n(1)
		p.move(n(0), n(1))
	case "Tm":
		p.line = matrix{n(0), n(1), n(2), n(3), n(4), n(5)}
		p.text = p.line
	case "T*":
		p.move(0, -p.leading)
	case "Tj", "'", `"`:
		if op != "Tj" {
			p.move(0, -p.leading)
		}
		if op == `"` && len(operands) > 2 {
			p.words, p.charGap = n(0), n(1)
		}
		if last := len(operands) - 1; last >= 0 {
			s, _ := operands[last].(text)
			p.show(s)
		}
	case "TJ":
		if len(operands) > 0 {
			list, _ := operands[0].(array)
			p.showAll(list)
		}
	}
}

// perState is the memory of a saved state.
const perState = 128

// move starts a line.
func (p *painter) move(x, y float64) {
	p.line = matrix{1, 0, 0, 1, x, y}.then(p.line)
	p.text = p.line
}

// showAll shows strings with distances between them.
func (p *painter) showAll(list array) {
	for _, x := range list {
		switch x := x.(type) {
		case text:
			p.show(x)
		case number:
			p.advance(-x / 1000 * p.size)
		}
	}
}

// advance moves along the text, by a distance before it is stretched.
func (p *painter) advance(by float64) {
	if p.font != nil && p.font.down {
		p.text = matrix{1, 0, 0, 1, 0, -by}.then(p.text)
		return
	}
	p.text = matrix{1, 0, 0, 1, by * p.stretch, 0}.then(p.text)
}

// show shows a string.
func (p *painter) show(s text) {
	w := p.file.w
	const perByte = 16
	if p.font == nil || !w.spend(perByte*(len(s)+1)) {
		return
	}
	if p.font.composite != nil && p.font.composite.set != nil {
		w.spend(8 * perByte * len(s)) // decoding is slow
	}
	full := p.text.then(p.toPage)
	r := run{from: full.apply(point{0, p.rise})}
	unit := point{full[0], full[1]}
	if p.font.down {
		unit = point{-full[2], -full[3]}
	}
	length := math.Hypot(unit.x, unit.y)
	if !(length > 0) {
		return
	}
	r.along = point{unit.x / length, unit.y / length}
	r.size = math.Abs(p.size) * math.Hypot(full[2], full[3])
	r.wide = math.Abs(p.size*p.stretch) * length
	var b strings.Builder
	wide := p.charGap*p.size > 0 && p.charGap > spread*math.Abs(p.size)
	for first := true; len(s) > 0; first = false {
		var g shown
		g, s = p.font.next(s)
		p.shown++
		if g.text == "\uFFFD" {
			p.unmapped++
		}
		by := g.width*p.size + p.charGap
		if g.space {
			by += p.words
		}
		switch blank := g.text == " "; {
		case blank && p.words*p.size < 0 && by*p.size < closed*p.size*p.size:
		case wide && !first && !blank:
			b.WriteString(" " + g.text)
		default:
			b.WriteString(g.text)
		}
		p.advance(by)
	}
	p.advance(-p.charGap)
	r.to = p.text.then(p.toPage).apply(point{0, p.rise})
	p.advance(p.charGap)
	r.text = p.marked(tidy(b.String()))
	if w.text += len(r.text); w.text > limits.PDFText {
		w.stop(fmt.Errorf("its text exceeds %d bytes", limits.PDFText))
		return
	}
	if w.keep(len(r.text)) {
		p.layout.add(r)
	}
}

// marked returns the text of a run within the marked parts.
func (p *painter) marked(text string) string {
	for i := range p.marks {
		if m := &p.marks[i]; m.replaced {
			text, m.text = m.text, ""
			return text
		}
	}
	return text
}
