package pdf

import "bytes"

// perEntry is the memory of an entry in the table of objects.
const perEntry = 64

// readTables reads the cross-reference tables, the newest first.
func (f *file) readTables() {
	const tail = 2048
	from := max(len(f.b)-tail, 0)
	i := bytes.LastIndex(f.b[from:], []byte("startxref"))
	if i < 0 {
		return
	}
	at, ok := f.lexer(from + i + len("startxref")).integer()
	seen := map[int]bool{}
	for ok && at >= 0 && at < len(f.b) && !seen[at] && f.w.keep(perEntry) {
		seen[at] = true
		d := f.readTable(at)
		if d == nil {
			return
		}
		f.adopt(d)
		if mixed, has := d["XRefStm"].(number); has && mixed >= 0 && mixed < float64(len(f.b)) && !seen[int(mixed)] {
			seen[int(mixed)] = true
			f.readTable(int(mixed))
		}
		var prev number
		if prev, ok = d["Prev"].(number); ok {
			at = int(min(max(prev, -1), float64(len(f.b))))
		}
	}
}

// adopt takes what an older trailer has and the newer ones lack.
func (f *file) adopt(d dict) {
	for _, k := range []name{"Root", "Info", "Encrypt", "ID"} {
		if _, has := f.trailer[k]; !has && d[k] != nil {
			f.trailer[k] = d[k]
		}
	}
}

// set adds an object to the table, unless a newer table has it.
func (f *file) set(num int, e entry) bool {
	if _, newer := f.table[num]; newer {
		return f.w.spend(8)
	}
	if !f.w.keep(perEntry) {
		return false
	}
	f.table[num] = e
	return true
}

// readTable reads a table of either form, and returns its trailer.
func (f *file) readTable(at int) dict {
	l := f.lexer(at)
	l.skip()
	if !bytes.HasPrefix(f.b[l.at:], []byte("xref")) {
		return f.readTableStream(l.at)
	}
	l.at += len("xref")
	for {
		first, ok := l.integer()
		n, ok2 := l.integer()
		if !ok || !ok2 {
			break
		}
		for i := range n {
			offset, ok := l.integer()
			gen, ok2 := l.integer()
			kind := l.object()
			if !ok || !ok2 || kind != word("n") && kind != word("f") {
				return nil
			}
			e := entry{offset: int64(offset), gen: gen}
			if kind == word("f") {
				e.offset = -1
			}
			if !f.set(first+i, e) {
				return nil
			}
		}
	}
	if l.object() != word("trailer") {
		return nil
	}
	d, _ := l.object().(dict)
	return d
}

// readTableStream reads a table in a stream.
func (f *file) readTableStream(at int) dict {
	_, o := f.indirect(at)
	s, ok := o.(*stream)
	if !ok || s.dict["Type"] != name("XRef") {
		return nil
	}
	widths := f.numbers(s.dict["W"])
	if len(widths) < 3 {
		return nil
	}
	size, _ := s.dict["Size"].(number)
	index := f.numbers(s.dict["Index"])
	if len(index) < 2 {
		index = []float64{0, size}
	}
	b := f.decode(s)
	defer f.w.release(len(b))
	field := func(i, missing int) (int64, bool) {
		n := int(widths[i])
		switch {
		case n == 0:
			return int64(missing), true
		case n < 0 || n > 8 || n > len(b):
			return 0, false
		}
		var v int64
		for _, c := range b[:n] {
			v = v<<8 | int64(c)
		}
		b = b[n:]
		return v, true
	}
	for ; len(index) >= 2; index = index[2:] {
		for i := range int(max(min(index[1], 1<<24), 0)) {
			kind, ok := field(0, 1)
			second, ok2 := field(1, 0)
			third, ok3 := field(2, 0)
			if !ok || !ok2 || !ok3 || len(b) == 0 && kind+second+third == 0 {
				return s.dict
			}
			e := entry{offset: second, gen: int(third)}
			switch kind {
			case 0:
				e.offset = -1
			case 2:
				e = entry{pack: int(second)}
			}
			if !f.set(int(index[0])+i, e) {
				return nil
			}
		}
	}
	return s.dict
}

// rebuild makes the table from the objects in the file. Of two with the same number, the last is taken.
func (f *file) rebuild() {
	if f.rebuilt {
		return
	}
	f.rebuilt = true
	old := f.trailer
	f.table, f.trailer = map[int]entry{}, dict{}
	f.packs = map[int]*packed{}
	var streams []int // numbers of object streams
	for at := 0; f.w.err == nil; {
		i := bytes.Index(f.b[at:], []byte("obj"))
		next := len(f.b)
		if i >= 0 {
			next = at + i
		}
		f.trailers(f.b[at:next])
		if f.w.spend(next - at + 3); i < 0 {
			break
		}
		at = next + 3
		num, start, ok := f.heading(next)
		if !ok || !f.w.keep(perEntry) {
			continue
		}
		f.table[num] = entry{offset: int64(start)}
		_, o := f.indirect(start)
		if s, ok := o.(*stream); ok {
			switch s.dict["Type"] {
			case name("XRef"):
				f.newest(s.dict)
			case name("ObjStm"):
				streams = append(streams, num)
			}
			at = max(at, min(start+len(s.data), len(f.b)))
		}
		if d, ok := o.(dict); ok && d["Type"] == name("Catalog") {
			f.newest(dict{"Root": ref{num, 0}})
		}
	}
	f.adopt(old)
	f.repack(streams)
}

// repack adds the objects of object streams, the newest first.
func (f *file) repack(streams []int) {
	if f.crypt == nil && f.trailer["Encrypt"] != nil {
		if f.decrypt() != nil {
			return
		}
	}
	for i := len(streams) - 1; i >= 0 && f.w.err == nil; i-- {
		f.unpack(streams[i], -1)
		for num := range f.packs[streams[i]].at {
			f.set(num, entry{pack: streams[i]})
		}
	}
	if f.root() != nil {
		return
	}
	for num, e := range f.table {
		if d, ok := f.get(ref{num, 0}).(dict); ok && e.pack > 0 && d["Type"] == name("Catalog") {
			f.trailer["Root"] = ref{num, 0}
			return
		}
	}
}

// newest takes what a trailer has, over what earlier ones have.
func (f *file) newest(d dict) {
	for _, k := range []name{"Root", "Info", "Encrypt", "ID"} {
		if d[k] != nil {
			f.trailer[k] = d[k]
		}
	}
}

// trailers reads the trailers in a part of the file.
func (f *file) trailers(b []byte) {
	const keyword = "trailer"
	for f.w.err == nil {
		i := bytes.Index(b, []byte(keyword))
		if i < 0 {
			return
		}
		b = b[i+len(keyword):]
		if d, ok := (&lexer{b: b, w: f.w, refs: true}).object().(dict); ok {
			f.newest(d)
		}
	}
}

// heading reads the numbers before "obj" at an offset. It returns the object's number and where it begins.
func (f *file) heading(at int) (num, start int, ok bool) {
	back := func() (digits int) {
		for at > 0 && isSpace(f.b[at-1]) {
			at--
		}
		for at > 0 && f.b[at-1] >= '0' && f.b[at-1] <= '9' && digits < 10 {
			at, digits = at-1, digits+1
		}
		return digits
	}
	if back() == 0 || at == 0 || !isSpace(f.b[at-1]) || back() == 0 {
		return 0, 0, false
	}
	num, ok = f.lexer(at).integer()
	return num, at, ok
}
