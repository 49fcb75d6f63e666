package pdf

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
)

// font turns strings into glyphs.
type font struct {
	toUnicode *cmap // nil: none
	simple    *[256]string
	composite *composite // nil: each byte is a code
	first     int        // of widths
	widths    []float64  // in thousandths of the size; 0: unknown
	missing   float64
	standard  *[95]uint16 // widths of a standard font; nil: none
	scale     float64     // of widths
	down      bool        // text is written downwards
}

// composite is what fonts of many characters have.
type composite struct {
	codes  *cmap // an embedded map from codes to glyphs
	utf16  bool  // codes are UTF-16
	set    encoding.Encoding
	widths []cidWidths // sorted
}

// cidWidths are the widths of glyphs that follow each other.
type cidWidths struct {
	low, high uint32
	all       float64
	each      []float64 // nil: all have the same
}

// shown is a glyph of a string.
type shown struct {
	text  string  // "\uFFFD": unknown
	width float64 // in parts of the size
	space bool    // the code is a single byte 32, to which word spacing applies
}

// readFont reads a font. Memory for it is kept.
func (f *file) readFont(d dict) *font {
	out := &font{scale: 1. / 1000}
	const perFont = 4 << 10
	if !f.w.spend(perFont) || !f.w.keep(perFont) {
		return nil
	}
	if s, ok := f.get(d["ToUnicode"]).(*stream); ok {
		out.toUnicode = f.readCMap(s)
	}
	switch f.get(d["Subtype"]) {
	case name("Type0"):
		f.readComposite(out, d)
		return out
	case name("Type3"):
		if m := f.numbers(d["FontMatrix"]); len(m) == 6 && m[0] != 0 {
			out.scale = m[0]
		}
	}
	first, _ := f.get(d["FirstChar"]).(number)
	out.first, out.widths = int(first), f.numbers(d["Widths"])
	f.w.keep(8 * len(out.widths))
	descriptor, _ := f.get(d["FontDescriptor"]).(dict)
	out.missing, _ = f.get(descriptor["MissingWidth"]).(number)
	base, _ := f.get(d["BaseFont"]).(name)
	if len(out.widths) == 0 {
		out.standard = standardWidths(string(base))
	}
	out.simple = f.encoding(d, descriptor, string(base))
	return out
}

// encoding returns the texts of a simple font's codes.
func (f *file) encoding(d, descriptor dict, base string) *[256]string {
	set := standard
	named := f.get(d["Encoding"])
	details, _ := named.(dict)
	if details != nil {
		named = f.get(details["BaseEncoding"])
	}
	var out [256]string
	switch {
	case named == name("WinAnsiEncoding"):
		set = winAnsi
	case named == name("MacRomanEncoding"):
		set = macRoman
	case strings.Contains(base, "Symbol") && descriptor == nil:
		set = symbols
	case f.get(d["Subtype"]) == name("TrueType"):
		set = winAnsi
	case details == nil:
		out = f.builtIn(descriptor)
	}
	for i := range out {
		if r := set.code(byte(i)); out[i] == "" && r != 0 {
			out[i] = string(r)
		}
	}
	at := 0
	differences, _ := f.get(details["Differences"]).(array)
	for _, x := range differences {
		switch x := f.get(x).(type) {
		case number:
			at = int(min(max(x, 0), 256))
		case name:
			if at < 256 && f.w.spend(64) {
				out[at] = glyph(string(x))
			}
			at++
		}
	}
	return &out
}

// builtIn returns the texts of the codes that an embedded Type 1 font names in its clear part.
func (f *file) builtIn(descriptor dict) (out [256]string) {
	s, ok := f.get(descriptor["FontFile"]).(*stream)
	if !ok {
		return out
	}
	b := f.decode(s)
	defer f.w.release(len(b))
	clear, _, _ := bytes.Cut(b, []byte("eexec"))
	l := &lexer{b: clear, w: f.w}
	for o := l.object(); o != end; o = l.object() {
		if o != word("dup") {
			continue
		}
		c, ok := l.object().(number)
		n, ok2 := l.object().(name)
		if ok && ok2 && c >= 0 && c < 256 {
			out[int(c)] = glyph(string(n))
		}
	}
	return out
}

// readComposite reads what a font of many characters has.
func (f *file) readComposite(out *font, d dict) {
	c := &composite{}
	out.composite = c
	switch e := f.get(d["Encoding"]).(type) {
	case name:
		out.down = strings.HasSuffix(string(e), "-V") || e == "V"
		c.utf16 = strings.Contains(string(e), "UCS2") || strings.Contains(string(e), "UTF16")
		if !c.utf16 {
			c.set = charsetOf(string(e))
		}
	case *stream:
		mode, _ := f.get(e.dict["WMode"]).(number)
		out.down = mode == 1
		c.codes = f.readCMap(e)
	}
	list, _ := f.get(d["DescendantFonts"]).(array)
	if len(list) == 0 {
		return
	}
	inner, _ := f.get(list[0]).(dict)
	var ok bool
	if out.missing, ok = f.get(inner["DW"]).(number); !ok {
		out.missing = 1000
	}
	widths, _ := f.get(inner["W"]).(array)
	for len(widths) >= 2 {
		low, _ := f.get(widths[0]).(number)
		w := cidWidths{low: uint32(max(low, 0))}
		switch second := f.get(widths[1]).(type) {
		case array:
			w.each = f.numbers(second)
			w.high, widths = w.low+uint32(len(w.each))-1, widths[2:]
		case number:
			if len(widths) < 3 {
				widths = nil
				continue
			}
			w.all, _ = f.get(widths[2]).(number)
			w.high, widths = uint32(max(second, 0)), widths[3:]
		default:
			widths = widths[2:]
			continue
		}
		if !f.w.keep(64 + 8*len(w.each)) {
			return
		}
		c.widths = append(c.widths, w)
	}
	slices.SortStableFunc(c.widths, func(a, b cidWidths) int { return cmp.Compare(a.low, b.low) })
}

// cidWidth returns the width of a glyph.
func (f *font) cidWidth(cid uint32) float64 {
	list := f.composite.widths
	i, found := slices.BinarySearchFunc(list, cid, func(w cidWidths, c uint32) int { return cmp.Compare(w.low, c) })
	if !found {
		i--
	}
	switch {
	case i < 0 || list[i].high < cid:
		return f.missing
	case list[i].each == nil:
		return list[i].all
	case int(cid-list[i].low) < len(list[i].each):
		return list[i].each[cid-list[i].low]
	}
	return f.missing
}

// next returns the first glyph of a string that is not empty, and the rest of the string.
func (f *font) next(s text) (shown, text) {
	if f.composite != nil {
		return f.nextComposite(s)
	}
	c := s[0]
	g := shown{width: f.width(c), space: c == ' '}
	if f.toUnicode != nil {
		g.text, _ = f.toUnicode.text(uint32(c))
	}
	if g.text == "" && f.simple != nil {
		g.text = f.simple[c]
	}
	if g.text == "" && (c == '\t' || c == '\n' || c == '\r') {
		g.text = " "
	}
	if g.text == "" {
		g.text = "\uFFFD"
	}
	return g, s[1:]
}

// width returns the width of a simple font's code.
func (f *font) width(c byte) float64 {
	w := f.missing
	if i := int(c) - f.first; i >= 0 && i < len(f.widths) {
		w = f.widths[i]
	} else if f.standard != nil {
		if w = 500; c >= ' ' && c < 127 {
			w = float64(f.standard[c-' '])
		}
	}
	return w * f.scale
}

func (f *font) nextComposite(s text) (shown, text) {
	c := f.composite
	n := min(2, len(s))
	switch {
	case c.codes != nil:
		n = c.codes.next(s)
	case c.utf16 && len(s) >= 4 && s[0] >= 0xD8 && s[0] < 0xDC:
		n = 4
	case c.set != nil && (s[0] < 0x80 || c.set == charsetOf("RKSJ") && s[0] > 0xA0 && s[0] < 0xE0):
		n = 1
	}
	one := s[:n]
	cid := code(one)
	if c.codes != nil {
		cid = c.codes.cid(cid)
	}
	g := shown{width: f.cidWidth(cid) * f.scale, space: one == " "}
	if f.down {
		g.width = 1
	}
	if f.toUnicode != nil {
		g.text, _ = f.toUnicode.text(code(one))
	}
	switch {
	case g.text != "":
	case c.utf16:
		g.text = utf16Text(one)
	case c.set != nil:
		if b, err := c.set.NewDecoder().String(string(one)); err == nil && utf8.ValidString(b) {
			g.text = b
		}
	}
	if g.text == "" {
		g.text = "\uFFFD"
	}
	return g, s[n:]
}
