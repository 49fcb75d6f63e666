package items

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
)

// view is one reading of a text: its innermost container and the scalar that is being written.
type view struct {
	top  *level
	kind kind
	text run

	matching []*Value // what the scalar may become, sorted
	length   int      // bytes of their keys that are compared; digits of a number
	zero     bool     // -0 may become 0

	escape escape
}

type kind uint8

const (
	between kind = iota // no scalar
	inString
	inName
	inNumber
	inLiteral
)

// escape is an escape sequence in a string.
type escape struct {
	digits int8 // that follow; -1: the character after a backslash
	code   rune
	high   rune // a first surrogate, whose second one follows
}

// run is a text that grows by bytes: a prefix and the bytes after it.
type run struct {
	head   string
	tail   *cell
	length int // of the tail
}

type cell struct {
	before *cell
	b      byte
}

// maxTail bounds the tail of a run.
const maxTail = 256

func (r run) add(b byte) run {
	if r.length >= maxTail+len(r.head)/4 {
		r = run{head: r.String()}
	}
	r.tail, r.length = &cell{r.tail, b}, r.length+1
	return r
}

func (r run) String() string {
	out := make([]byte, len(r.head)+r.length)
	copy(out, r.head)
	for i, c := len(out)-1, r.tail; c != nil; i, c = i-1, c.before {
		out[i] = c.b
	}
	return string(out)
}

// wantsValue reports whether a value may begin here.
func (v *view) wantsValue() bool {
	return v.kind == between && (v.top.at == value || v.top.at == first && !v.top.object)
}

func (v *view) repeats() bool {
	switch v.kind {
	case between:
		return v.top.repeats && (v.top.at == another && !v.top.object || v.top.at == colon)
	case inNumber:
		if !v.top.watched || v.top.object {
			return false
		}
		if v.top.n >= limits.GrammarUniqueItems {
			return true
		}
		_, found := slices.BinarySearchFunc(v.top.seen, Number(v.text.String()), byKey)
		return found
	}
	return false
}

func (v *view) matches() bool {
	if v.kind != between {
		return len(v.matching) > 0 || v.zero
	}
	l := v.top
	next := l.at == first || l.at == name || l.at == value && !l.object
	return len(l.matching) > 0 || next && len(l.seen) > 0 || l.full()
}

func (v *view) hash(h *maphash.Hash) {
	h.WriteByte(byte(v.kind))
	h.WriteByte(byte(v.escape.digits))
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], uint32(v.escape.code))
	binary.LittleEndian.PutUint32(b[4:], uint32(v.escape.high))
	h.Write(b[:])
	h.WriteString(v.text.String())
	for l := v.top; l != nil; l = l.up {
		h.WriteByte(0xff)
		h.WriteByte(byte(l.at))
		binary.LittleEndian.PutUint64(b[:], l.sum+uint64(l.n))
		h.Write(b[:])
		h.WriteString(l.name)
		if l.last != nil {
			h.WriteString(l.last.Key)
		}
		for i, p := range l.parts {
			if l.object {
				h.WriteString(l.names[i])
			}
			h.WriteByte(0xfe)
			h.WriteString(p.Key)
		}
	}
}

// next returns the view after b; nil if it is not JSON or the outermost array ends.
func (v *view) next(b byte, opens bool) *view {
	switch v.kind {
	case inString, inName:
		return v.nextInString(b)
	case inNumber:
		if b >= '0' && b <= '9' || strings.IndexByte("+-.eE", b) >= 0 {
			return v.nextInNumber(b)
		}
		return v.end(Number(v.text.String())).next(b, opens)
	case inLiteral:
		return v.nextInLiteral(b)
	}
	l := v.top
	switch {
	case b == ' ' || b == '\n' || b == '\r' || b == '\t':
		return v
	case b == ',' && l.at == another:
		if l.object {
			return &view{top: l.step(name)}
		}
		return &view{top: l.step(value)}
	case b == ':' && l.at == colon:
		return &view{top: l.step(value)}
	case (b == '}' && l.object || b == ']' && !l.object) && (l.at == first || l.at == another):
		if l.up == nil {
			return nil
		}
		return (&view{top: l.up}).end(l.whole())
	case b == '"' && l.object && (l.at == first || l.at == name):
		return &view{top: l, kind: inName, matching: narrow(l.candidates(), 0, b, keyAt), length: 1}
	}
	if !v.wantsValue() {
		return nil
	}
	return v.begin(b, opens)
}

// begin returns the view after the first byte of a value.
func (v *view) begin(b byte, opens bool) *view {
	l := v.top
	all := l.candidates()
	switch {
	case b == '[' || b == '{':
		matching := narrow(all, 0, b, keyAt)
		return &view{top: &level{up: l, object: b == '{', watched: opens, matching: matching, began: matching}}
	case b == '"':
		return &view{top: l, kind: inString, matching: narrow(all, 0, b, keyAt), length: 1}
	case b == 't' || b == 'f' || b == 'n':
		return &view{top: l, kind: inLiteral, text: run{}.add(b), matching: narrow(all, 0, b, keyAt), length: 1}
	case b == '-':
		numbers := narrow(all, 0, numberStart, keyAt)
		out := &view{top: l, kind: inNumber, text: run{}.add(b), matching: narrow(numbers, 1, '-', keyAt)}
		_, out.zero = slices.BinarySearchFunc(numbers, &Value{Key: zeroKey}, byKey)
		return out
	case b >= '0' && b <= '9':
		numbers := narrow(all, 0, numberStart, keyAt)
		out := &view{top: l, kind: inNumber, matching: narrow(numbers, 1, '+', keyAt)}
		return out.nextInNumber(b)
	}
	return nil
}

// end returns the view after a value.
func (v *view) end(whole *Value) *view { return &view{top: v.top.add(whole)} }

func (v *view) nextInLiteral(b byte) *view {
	c := *v
	c.text, c.matching, c.length = v.text.add(b), narrow(v.matching, v.length, b, keyAt), v.length+1
	switch text := c.text.String(); {
	case text == "true" || text == "false" || text == "null":
		return v.end(Literal(text))
	case len(text) > 5:
		return nil
	}
	return &c
}

func (v *view) nextInNumber(b byte) *view {
	c := *v
	c.text = v.text.add(b)
	text := v.text
	exponent := b == 'e' || b == 'E' || text.has('e') || text.has('E')
	if b < '0' || b > '9' || exponent {
		return &c
	}
	if b == '0' && v.length == 0 { // zeros at the beginning do not count
		return &c
	}
	c.matching, c.length = narrow(v.matching, v.length, b, digitAt), v.length+1
	c.zero = false
	return &c
}

// has reports whether a short text has a byte.
func (r run) has(b byte) bool {
	for c := r.tail; c != nil; c = c.before {
		if c.b == b {
			return true
		}
	}
	return strings.IndexByte(r.head, b) >= 0
}

func (v *view) nextInString(b byte) *view {
	c := *v
	e := &c.escape
	switch {
	case e.digits == -1:
		if b == 'u' {
			e.digits, e.code = 4, 0
			return &c
		}
		e.digits = 0
		c.replaceHigh()
		if i := strings.IndexByte(`"\/bfnrt`, b); i >= 0 {
			c.put("\"\\/\b\f\n\r\t"[i])
			return &c
		}
		return nil
	case e.digits > 0:
		d := strings.IndexByte("0123456789abcdef", b|0x20)
		if b >= '0' && b <= '9' {
			d = int(b - '0')
		}
		if d < 0 {
			return nil
		}
		e.code = e.code<<4 | rune(d)
		if e.digits--; e.digits == 0 {
			c.putCode(e.code)
		}
		return &c
	case b == '\\':
		e.digits = -1
		return &c
	case b == '"':
		c.replaceHigh()
		if c.kind == inName {
			l := v.top.step(colon)
			l.name = c.text.String()
			if l.watched {
				l.compare(String(l.name))
			}
			return &view{top: l}
		}
		return v.end(String(c.text.String()))
	case b < ' ':
		return nil
	}
	c.replaceHigh()
	c.put(b)
	return &c
}

// putCode adds the character of \uXXXX.
func (v *view) putCode(code rune) {
	e := &v.escape
	switch {
	case code >= 0xdc00 && code < 0xe000 && e.high != 0:
		code = (e.high-0xd800)<<10 + code - 0xdc00 + 0x10000
		e.high = 0
	case code >= 0xd800 && code < 0xdc00:
		v.replaceHigh()
		e.high = code
		return
	default:
		v.replaceHigh()
	}
	for _, b := range []byte(string(code)) {
		v.put(b)
	}
}

// replaceHigh adds the replacement character for a surrogate without its second half, as most parsers read it.
func (v *view) replaceHigh() {
	if v.escape.high == 0 {
		return
	}
	v.escape.high = 0
	for _, b := range []byte(string(utf8.RuneError)) {
		v.put(b)
	}
}

func (v *view) put(b byte) {
	v.text = v.text.add(b)
	v.matching, v.length = narrow(v.matching, v.length, b, keyAt), v.length+1
}

// keyAt returns a byte of a key, 0 behind its end.
func keyAt(key string, i int) byte {
	if i < len(key) {
		return key[i]
	}
	return 0
}

// narrow returns the values that have b at a place, of sorted ones that are equal before it.
func narrow(from []*Value, i int, b byte, at func(string, int) byte) []*Value {
	if len(from) == 0 {
		return nil
	}
	if len(from) == 1 {
		if at(from[0].Key, i) == b && (b != 0 || i < len(from[0].Key)) {
			return from
		}
		return nil
	}
	low := sort.Search(len(from), func(k int) bool { return at(from[k].Key, i) >= b })
	high := low + sort.Search(len(from)-low, func(k int) bool { return at(from[low+k].Key, i) > b })
	return from[low:high]
}
