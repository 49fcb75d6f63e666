package pdf

import (
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/ingotml/ingot/internal/limits"
)

// cmap maps codes to text or to the numbers of glyphs.
type cmap struct {
	w       *work
	lengths [5][]span // code spaces, by bytes of a code
	texts   map[uint32]text
	ranges  []span // of codes whose texts or numbers follow each other
}

// span is a range of codes.
type span struct {
	low, high uint32
	to        text   // of the first code, in UTF-16
	cid       uint32 // of the first code
}

// readCMap reads a map. Memory for it is kept.
func (f *file) readCMap(s *stream) *cmap {
	b := f.decode(s)
	defer f.w.release(len(b))
	m := &cmap{w: f.w, texts: map[uint32]text{}}
	l := &lexer{b: b, w: f.w}
	var list []object // the objects since the last operator
	for f.w.err == nil {
		o := l.object()
		op, ok := o.(word)
		if !ok {
			if len(list) < limits.PDFValues {
				list = append(list, o)
			}
			continue
		}
		if op == end {
			break
		}
		if strings.HasPrefix(string(op), "end") {
			m.add(string(op), list)
		}
		list = list[:0]
	}
	slices.SortStableFunc(m.ranges, func(a, b span) int { return int(int64(a.low) - int64(b.low)) })
	return m
}

// add takes the objects before an operator.
func (m *cmap) add(op string, list []object) {
	per := 3
	if strings.HasSuffix(op, "char") || op == "endcodespacerange" {
		per = 2
	}
	const perMapping, maxSpaces = 64, 64
	for ; len(list) >= per && m.w.keep(perMapping); list = list[per:] {
		low, ok := list[0].(text)
		if !ok || len(low) == 0 || len(low) > 4 {
			continue
		}
		last, _ := list[per-1].(text)
		s := span{low: code(low), to: last}
		s.high = s.low
		if high, ok := list[1].(text); ok && per == 3 || op == "endcodespacerange" {
			s.high = code(high)
		}
		number, isNumber := list[per-1].(number)
		switch op {
		case "endcodespacerange":
			if spaces := &m.lengths[len(low)]; len(*spaces) < maxSpaces {
				*spaces = append(*spaces, s)
			}
		case "endbfchar":
			m.texts[s.low] = last
		case "endbfrange":
			if texts, ok := list[2].(array); ok {
				for i, x := range texts {
					if to, ok := x.(text); ok && m.w.keep(perMapping) {
						m.texts[s.low+uint32(i)] = to
					}
				}
				continue
			}
			m.ranges = append(m.ranges, s)
		case "endcidchar", "endcidrange":
			if s.cid = uint32(max(number, 0)); isNumber {
				m.ranges = append(m.ranges, s)
			}
		}
	}
}

// code is a code's number.
func code(s text) (n uint32) {
	for i := range min(len(s), 4) {
		n = n<<8 | uint32(s[i])
	}
	return n
}

// find returns the range of a code.
func (m *cmap) find(c uint32) (span, bool) {
	i, found := slices.BinarySearchFunc(m.ranges, c, func(s span, c uint32) int { return int(int64(s.low) - int64(c)) })
	if !found {
		i--
	}
	if i < 0 || m.ranges[i].high < c {
		return span{}, false
	}
	return m.ranges[i], true
}

// text returns the text of a code.
func (m *cmap) text(c uint32) (string, bool) {
	if s, ok := m.texts[c]; ok {
		return utf16Text(s), true
	}
	s, ok := m.find(c)
	if !ok || len(s.to) == 0 {
		return "", false
	}
	to := []byte(s.to)
	more := c - s.low + uint32(to[len(to)-1])
	to[len(to)-1] = byte(more)
	if len(to) > 1 {
		more = more>>8 + uint32(to[len(to)-2])
		to[len(to)-2] = byte(more)
	}
	if len(to) == 1 {
		return string(rune(to[0])), true
	}
	return utf16Text(text(to)), true
}

// cid returns the number of a code's glyph.
func (m *cmap) cid(c uint32) uint32 {
	s, ok := m.find(c)
	if !ok {
		return 0
	}
	return s.cid + c - s.low
}

// next returns how many bytes the first code of a string has.
func (m *cmap) next(s text) int {
	for n := 1; n <= min(4, len(s)); n++ {
		c := code(s[:n])
		for _, space := range m.lengths[n] {
			if c >= space.low && c <= space.high {
				return n
			}
		}
	}
	for n := 1; n <= 4; n++ {
		if len(m.lengths[n]) > 0 {
			return min(n, len(s))
		}
	}
	return min(2, len(s))
}

// charsets are the encodings of predefined maps, by parts of their names. The first match counts.
var charsets = []struct {
	part string
	encoding.Encoding
}{
	{"RKSJ", japanese.ShiftJIS}, {"GBK2K", simplifiedchinese.GB18030}, {"GBK", simplifiedchinese.GBK},
	{"GB-EUC", simplifiedchinese.GBK}, {"GBpc", simplifiedchinese.GBK}, {"B5", traditionalchinese.Big5},
	{"KSC", korean.EUCKR},
}

// charsetOf returns the encoding of a predefined map, or nil.
func charsetOf(table string) encoding.Encoding {
	if table == "EUC-H" || table == "EUC-V" {
		return japanese.EUCJP
	}
	for _, c := range charsets {
		if strings.Contains(table, c.part) {
			return c.Encoding
		}
	}
	return nil
}
