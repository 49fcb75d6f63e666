package pdf

import (
	"bytes"
	"fmt"
	"unicode/utf16"

	"github.com/ingotml/ingot/internal/limits"
)

// file is an opened PDF file.
type file struct {
	b       []byte
	w       *work
	table   map[int]entry // by object number
	trailer dict
	crypt   *crypt // nil: the file is not encrypted

	rebuilt bool            // the table is made from the objects in the file
	packs   map[int]*packed // object streams
	fonts   map[int]*font   // by object number
	loading map[int]bool    // objects that are being loaded
}

// entry is where an object is.
type entry struct {
	offset int64 // in the file; negative: the object is free
	pack   int   // the object stream that has it, or 0
	gen    int
}

// packed is a decoded object stream.
type packed struct {
	b  []byte
	at map[int]int // offsets of objects by number
}

// open reads a file's tables.
func open(b []byte, w *work) (*file, error) {
	const junk = 1024 // what may be before the header, as in other readers
	at := bytes.Index(b[:min(len(b), junk)], []byte("%PDF-"))
	if at < 0 {
		return nil, ErrNoPDF
	}
	f := &file{b: b[at:], w: w, table: map[int]entry{}, trailer: dict{}, packs: map[int]*packed{},
		fonts: map[int]*font{}, loading: map[int]bool{}}
	f.readTables()
	err := f.decrypt()
	if f.root() == nil {
		f.rebuild()
		err = f.decrypt()
	}
	return f, err
}

// root returns the page tree, or nil.
func (f *file) root() dict {
	root, _ := f.get(f.trailer["Root"]).(dict)
	pages, _ := f.get(root["Pages"]).(dict)
	return pages
}

// lexer returns a lexer of the file.
func (f *file) lexer(at int) *lexer { return &lexer{b: f.b, at: at, w: f.w, refs: true} }

// get returns the object that a value is or refers to.
func (f *file) get(o object) object {
	for range 16 { // references to references
		r, ok := o.(ref)
		if !ok {
			return o
		}
		o = f.load(r.num)
	}
	return nil
}

// load reads an object. The result is nil if it is not there, damaged, or part of itself.
func (f *file) load(num int) object {
	e, ok := f.table[num]
	if !ok || e.offset < 0 || f.loading[num] || !f.w.spend(16) {
		return nil
	}
	f.loading[num] = true
	defer delete(f.loading, num)
	if e.pack > 0 {
		return f.unpack(e.pack, num)
	}
	if e.offset < int64(len(f.b)) {
		if got, o := f.indirect(int(e.offset)); got.num == num {
			return o
		}
	}
	if f.rebuilt {
		return nil
	}
	f.rebuild()
	e, ok = f.table[num]
	switch {
	case !ok || e.offset < 0 || e.offset >= int64(len(f.b)):
		return nil
	case e.pack > 0:
		return f.unpack(e.pack, num)
	}
	_, o := f.indirect(int(e.offset))
	return o
}

// indirect reads the object that is defined at an offset. The number is 0 if there is none.
func (f *file) indirect(at int) (r ref, o object) {
	l := f.lexer(at)
	num, ok := l.integer()
	gen, ok2 := l.integer()
	if l.refs = false; !ok || !ok2 || l.object() != word("obj") {
		return ref{}, nil
	}
	r = ref{num, gen}
	if l.refs = true; f.crypt != nil {
		l.open = func(s text) text { return f.crypt.string(r, s) }
	}
	o = l.object()
	d, ok := o.(dict)
	if !ok {
		return r, o
	}
	after := l.at
	if l.object() != word("stream") {
		l.at = after
		return r, o
	}
	if l.at < len(f.b) && f.b[l.at] == '\r' {
		l.at++
	}
	if l.at < len(f.b) && f.b[l.at] == '\n' {
		l.at++
	}
	return r, &stream{dict: d, data: f.data(l.at, d["Length"]), ref: r}
}

// data returns a stream's data. If its length is wrong, they end at the next endstream.
func (f *file) data(at int, length object) []byte {
	rest := f.b[at:]
	const close = "endstream"
	if n, ok := f.get(length).(number); ok && n >= 0 && n <= float64(len(rest)) {
		after := rest[int(n):]
		if bytes.HasPrefix(bytes.TrimLeft(after[:min(len(after), len(close)+8)], "\r\n \t\x00"), []byte(close)) {
			return rest[:int(n)]
		}
	}
	n := bytes.Index(rest, []byte(close))
	if n < 0 {
		n = len(rest)
	}
	f.w.spend(n)
	return rest[:n]
}

// unpack reads an object of an object stream.
func (f *file) unpack(pack, num int) object {
	p := f.packs[pack]
	if p == nil {
		p = &packed{at: map[int]int{}}
		f.packs[pack] = p
		if e := f.table[pack]; e.pack == 0 { // an object stream is in no other one
			if s, ok := f.load(pack).(*stream); ok {
				f.index(p, s)
			}
		}
	}
	at, ok := p.at[num]
	if !ok || at < 0 || at > len(p.b) {
		return nil
	}
	l := &lexer{b: p.b, at: at, w: f.w, refs: true}
	if o := l.object(); o != end {
		if _, stray := o.(word); !stray {
			return o
		}
	}
	return nil
}

// index decodes an object stream and keeps it.
func (f *file) index(p *packed, s *stream) {
	p.b = f.decode(s)
	n, _ := f.get(s.dict["N"]).(number)
	first, _ := f.get(s.dict["First"]).(number)
	l := &lexer{b: p.b, w: f.w}
	const perObject = 32
	for i := 0; i < int(min(n, 1<<20)) && f.w.keep(perObject); i++ {
		num, ok := l.integer()
		at, ok2 := l.integer()
		if !ok || !ok2 || !f.w.spend(8) {
			break
		}
		if _, twice := p.at[num]; !twice {
			p.at[num] = int(first) + at
		}
	}
}

// numbers returns a list of numbers, with 0 for everything else.
func (f *file) numbers(o object) []float64 {
	list, _ := f.get(o).(array)
	out := make([]float64, len(list))
	for i, x := range list {
		out[i], _ = f.get(x).(number)
	}
	return out
}

// title returns the title in the file's information.
func (f *file) title() string {
	info, _ := f.get(f.trailer["Info"]).(dict)
	s, _ := f.get(info["Title"]).(text)
	const most = 500
	return tidy(decodeText(s[:min(len(s), most)]))
}

// decodeText decodes a text string: UTF-16, UTF-8, or bytes of PDF's own encoding.
func decodeText(s text) string {
	switch {
	case len(s) >= 2 && s[0] == 0xFE && s[1] == 0xFF:
		return utf16Text(s[2:])
	case len(s) >= 3 && s[:3] == "\xEF\xBB\xBF":
		return string(s[3:])
	}
	var out []rune
	for i := range len(s) {
		if r := textSet.code(s[i]); r != 0 {
			out = append(out, r)
		}
	}
	return string(out)
}

// utf16Text decodes UTF-16 with the high byte first.
func utf16Text(s text) string {
	units := make([]uint16, len(s)/2)
	for i := range units {
		units[i] = uint16(s[2*i])<<8 | uint16(s[2*i+1])
	}
	return string(utf16.Decode(units))
}

// pages yields the pages in order, each with what it inherits. A page that occurs twice in the tree is yielded once.
func (f *file) pages() func(yield func(dict) bool) {
	return func(yield func(dict) bool) {
		seen := map[int]bool{}
		var walk func(o object, inherited object, depth int) bool
		walk = func(o, inherited object, depth int) bool {
			if depth > limits.PDFNesting {
				f.w.stop(fmt.Errorf("its page tree is deeper than %d levels", limits.PDFNesting))
			}
			if r, ok := o.(ref); ok {
				if seen[r.num] || !f.w.keep(16) {
					return f.w.err == nil
				}
				seen[r.num] = true
			}
			node, ok := f.get(o).(dict)
			if !ok || !f.w.spend(64) {
				return f.w.err == nil
			}
			if r, has := node["Resources"]; has {
				inherited = r
			}
			kids, ok := f.get(node["Kids"]).(array)
			if kind := f.get(node["Type"]); kind == name("Page") || !ok && kind != name("Pages") {
				node["Resources"] = inherited
				return yield(node) && f.w.err == nil
			}
			for _, kid := range kids {
				if !walk(kid, inherited, depth+1) {
					return false
				}
			}
			return true
		}
		if root, ok := f.get(f.trailer["Root"]).(dict); ok {
			walk(root["Pages"], nil, 0)
		}
	}
}
