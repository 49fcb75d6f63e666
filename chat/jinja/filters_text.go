package jinja

import (
	"slices"
	"strings"
	"unicode"
)

// digitValue returns the value of a decimal digit of any script; -1 if c is not one.
func digitValue(c rune) int {
	if !unicode.IsDigit(c) {
		return -1
	}
	// Unicode's decimal digits come in contiguous runs of ten, from 0 to 9.
	n := 0
	for n < 9 && unicode.IsDigit(c-1) {
		c, n = c-1, n+1
	}
	return n
}

func isWordRune(c rune) bool { return c == '_' || isAlnum(c) }

func filterWordCount(r *run, v []Value) (Value, error) {
	s, err := r.str(v[0])
	if err != nil {
		return nil, err
	}
	r.work(len(s) / 16)
	n, in := int64(0), false
	for _, c := range s {
		word := isWordRune(c)
		if word && !in {
			n++
		}
		in = word
	}
	return n, nil
}

func filterURLEncode(r *run, v []Value) (Value, error) {
	if s, ok := v[0].(string); ok {
		return quoteURL(s, "/"), r.alloc(3 * len(s))
	}
	var pairs []Value
	if d, ok := v[0].(*Dict); ok {
		for i := range d.allKeys() {
			pairs = append(pairs, tuple(d.allKeys()[i], d.allValues()[i]))
		}
	} else if err := iterable(v[0]); err != nil {
		s, err := r.str(v[0])
		return quoteURL(s, "/"), err
	} else if pairs, err = r.collect(v[0]); err != nil {
		return nil, err
	}
	parts := make([]string, len(pairs))
	for i, p := range pairs {
		kv, err := r.collect(p)
		if err != nil {
			return nil, err
		}
		if len(kv) != 2 {
			return nil, valueError("not enough values to unpack (expected 2, got %d)", len(kv))
		}
		k, err := r.urlText(kv[0])
		if err != nil {
			return nil, err
		}
		x, err := r.urlText(kv[1])
		if err != nil {
			return nil, err
		}
		parts[i] = strings.ReplaceAll(quoteURL(k, ""), "%20", "+") + "=" + strings.ReplaceAll(quoteURL(x, ""), "%20", "+")
	}
	s, err := r.join(parts, "&")
	return s, err
}

func (r *run) urlText(v Value) (string, error) {
	if b, ok := v.(Bytes); ok {
		return string(b), nil
	}
	return r.str(v)
}

func quoteURL(s, safe string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("_.-~", c) >= 0 ||
			strings.IndexByte(safe, c) >= 0 {
			b.WriteByte(c)
		} else {
			const hexDigits = "0123456789ABCDEF"
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

func filterWordWrap(r *run, v []Value) (Value, error) {
	width, err := needInt(v[1], 79)
	if err != nil {
		return nil, err
	}
	sep := "\n"
	if v[3] != missing && v[3] != nil {
		if sep, err = needText(v[3], "wrapstring"); err != nil {
			return nil, err
		}
	}
	s, ok := v[0].(string)
	if !ok {
		if u, is := v[0].(*undefined); is {
			return nil, u.fail()
		}
		return nil, raise("AttributeError", "'%s' object has no attribute 'splitlines'", typeName(v[0]))
	}
	long := v[2] == missing || truth(v[2])
	hyphens := v[4] == missing || truth(v[4])
	var lines []string
	for _, l := range splitLines(s, false) {
		if width <= 0 {
			return nil, valueError("invalid width %d (must be > 0)", width)
		}
		if err := r.alloc(valueSize * len(l)); err != nil {
			return nil, err
		}
		w := wrap(wrapChunks(l, hyphens), int(min(width, 1<<30)), long, hyphens)
		lines = append(lines, strings.Join(w, sep))
	}
	out, err := r.join(lines, sep)
	return out, err
}

// wrapSpace is textwrap's white space, which is ASCII only.
func wrapSpace(c rune) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// wrapChunks splits a line at possible breaks: at white space, after hyphens inside words and around long dashes.
func wrapChunks(s string, hyphens bool) []string {
	var chunks []string
	for s != "" {
		n := len(s) - len(strings.TrimLeftFunc(s, wrapSpace))
		if n == 0 {
			if n = strings.IndexFunc(s, wrapSpace); n < 0 {
				n = len(s)
			}
			if hyphens {
				n = hyphenBreak(s[:n])
			}
		}
		chunks = append(chunks, s[:n])
		s = s[n:]
	}
	return chunks
}

// hyphenBreak returns the end of the first chunk of a word.
func hyphenBreak(w string) int {
	runes := []rune(w)
	size := func(n int) int { return len(string(runes[:n])) }
	letter := func(i int) bool {
		return i >= 0 && i < len(runes) && isWordRune(runes[i]) && !unicode.IsDigit(runes[i])
	}
	punctuation := func(i int) bool {
		return isWordRune(runes[i]) || strings.ContainsRune("!\"'&.,?", runes[i])
	}
	// Two or more hyphens between words form a chunk.
	if runes[0] == '-' {
		n := 1
		for n < len(runes) && runes[n] == '-' {
			n++
		}
		if n >= 2 && n < len(runes) && isWordRune(runes[n]) {
			return size(n)
		}
	}
	for i := 1; i < len(runes); i++ {
		if runes[i] != '-' {
			continue
		}
		if i+1 < len(runes) && runes[i+1] == '-' {
			n := i
			for n < len(runes) && runes[n] == '-' {
				n++
			}
			if n < len(runes) && isWordRune(runes[n]) && punctuation(i-1) {
				return size(i)
			}
			i = n
			continue
		}
		before := letter(i-1) && letter(i-2) || i >= 3 && runes[i-2] == '-' && letter(i-1) && letter(i-3)
		after := letter(i+1) && (letter(i+2) || i+3 < len(runes) && runes[i+2] == '-' && letter(i+3))
		if before && after {
			return size(i + 1)
		}
	}
	return len(w)
}

// wrap fills lines with chunks like Python's textwrap.
func wrap(chunks []string, width int, long, hyphens bool) []string {
	var lines []string
	blank := func(s string) bool { return strings.TrimFunc(s, isSpace) == "" }
	for i := 0; i < len(chunks); {
		var line []string
		used := 0
		if len(lines) > 0 && blank(chunks[i]) {
			i++
		}
		for i < len(chunks) {
			n := runeCount(chunks[i])
			if used+n > width {
				break
			}
			line, used = append(line, chunks[i]), used+n
			i++
		}
		if i < len(chunks) && runeCount(chunks[i]) > width {
			room := width - used
			if width < 1 {
				room = 1
			}
			switch {
			case long:
				at := room
				if hyphens && runeCount(chunks[i]) > room {
					head := substring(chunks[i], 0, room)
					if h := strings.LastIndexByte(head, '-'); h > 0 && strings.Trim(head[:h], "-") != "" {
						at = runeCount(head[:h]) + 1
					}
				}
				cut := len(substring(chunks[i], 0, at))
				line = append(line, chunks[i][:cut])
				chunks[i] = chunks[i][cut:]
				if chunks[i] == "" {
					i++
				}
			case len(line) == 0:
				line = append(line, chunks[i])
				i++
			}
		}
		if len(line) > 0 && blank(line[len(line)-1]) {
			line = line[:len(line)-1]
		}
		if len(line) > 0 {
			lines = append(lines, strings.Join(line, ""))
		}
	}
	return lines
}

// pprint returns Python's pprint.pformat(v) with sorted keys: a single line if it fits into 80 columns, otherwise one
// item per line.
func (r *run) pprint(v Value) (string, error) {
	p := &prettyPrinter{r: r}
	if err := p.print(v, 0, 0, 0); err != nil {
		return "", err
	}
	return p.b.String(), r.alloc(p.b.Len())
}

type prettyPrinter struct {
	r *run
	b strings.Builder
}

const prettyWidth = 80

// sorted returns v with the keys of dicts sorted.
func (p *prettyPrinter) sorted(v Value, depth int) (Value, error) {
	if depth > p.r.limits.Depth {
		return nil, raise("RecursionError", "maximum recursion depth exceeded")
	}
	items := func(in []Value) ([]Value, error) {
		out := make([]Value, len(in))
		for i, x := range in {
			var err error
			if out[i], err = p.sorted(x, depth+1); err != nil {
				return nil, err
			}
		}
		return out, p.r.alloc(len(in) * valueSize)
	}
	switch x := v.(type) {
	case *List:
		l, err := items(x.Items)
		return &List{l}, err
	case *Tuple:
		l, err := items(x.Items)
		return &Tuple{Items: l}, err
	case *Dict:
		keys, err := p.keys(x)
		if err != nil {
			return nil, err
		}
		d := NewDict()
		for _, k := range keys {
			y, _, _ := x.get(k)
			if y, err = p.sorted(y, depth+1); err != nil {
				return nil, err
			}
			_ = d.Set(k, y)
		}
		return d, nil
	}
	return v, nil
}

// keys returns the sorted keys of d. Incomparable keys are sorted by the names of their types.
func (p *prettyPrinter) keys(d *Dict) ([]Value, error) {
	keys := slices.Clone(d.allKeys())
	slices.SortStableFunc(keys, func(a, b Value) int {
		less, err := p.r.ordered("<", a, b, 0)
		if err != nil {
			return strings.Compare(typeName(a), typeName(b))
		}
		if less {
			return -1
		}
		if less, _ = p.r.ordered("<", b, a, 0); less {
			return 1
		}
		return 0
	})
	return keys, nil
}

func (p *prettyPrinter) print(v Value, indent, allowance, depth int) error {
	sorted, err := p.sorted(v, depth)
	if err != nil {
		return err
	}
	flat, err := p.r.repr(sorted)
	if err != nil {
		return err
	}
	if runeCount(flat) <= prettyWidth-indent-allowance {
		p.b.WriteString(flat)
		return nil
	}
	switch x := sorted.(type) {
	case *Dict:
		p.b.WriteByte('{')
		for i, k := range x.allKeys() {
			last := i == len(x.allKeys())-1
			key, err := p.r.repr(k)
			if err != nil {
				return err
			}
			p.b.WriteString(key + ": ")
			more := 1
			if last {
				more = allowance + 1
			}
			if err := p.print(x.allValues()[i], indent+runeCount(key)+3, more, depth+1); err != nil {
				return err
			}
			if !last {
				p.b.WriteString(",\n" + strings.Repeat(" ", indent+1))
			}
		}
		p.b.WriteByte('}')
	case *List:
		return p.items("[", x.Items, "]", indent, allowance, depth)
	case *Tuple:
		end := ")"
		if len(x.Items) == 1 {
			end = ",)"
		}
		return p.items("(", x.Items, end, indent, allowance, depth)
	case string:
		p.text(x, indent, allowance, depth)
	default:
		p.b.WriteString(flat)
	}
	return nil
}

func (p *prettyPrinter) items(open string, items []Value, end string, indent, allowance, depth int) error {
	p.b.WriteString(open)
	for i, x := range items {
		more := 1
		if i == len(items)-1 {
			more = allowance + len(end)
		}
		if err := p.print(x, indent+1, more, depth+1); err != nil {
			return err
		}
		if i < len(items)-1 {
			p.b.WriteString(",\n" + strings.Repeat(" ", indent+1))
		}
	}
	p.b.WriteString(end)
	return nil
}

// text prints a long string as several literals, split after white space.
func (p *prettyPrinter) text(s string, indent, allowance, depth int) {
	if depth == 0 {
		indent, allowance = indent+1, allowance+1
	}
	var chunks []string
	lines := splitLines(s, true)
	for i, line := range lines {
		width := prettyWidth - indent
		if i == len(lines)-1 {
			width -= allowance
		}
		if q := quote(line); runeCount(q) <= width {
			chunks = append(chunks, q)
			continue
		}
		parts := wordsWithSpace(line)
		current := ""
		for j, w := range parts {
			limit := prettyWidth - indent
			if j == len(parts)-1 && i == len(lines)-1 {
				limit -= allowance
			}
			if runeCount(quote(current+w)) > limit {
				if current != "" {
					chunks = append(chunks, quote(current))
				}
				current = w
			} else {
				current += w
			}
		}
		if current != "" {
			chunks = append(chunks, quote(current))
		}
	}
	sep := "\n" + strings.Repeat(" ", indent)
	if depth == 0 && len(chunks) > 1 {
		p.b.WriteString("(" + strings.Join(chunks, sep) + ")")
	} else {
		p.b.WriteString(strings.Join(chunks, sep))
	}
}

// wordsWithSpace splits s into words, each with its trailing white space.
func wordsWithSpace(s string) []string {
	var parts []string
	start, space := 0, false
	for i, c := range s {
		if isSpace(c) {
			space = true
		} else if space {
			parts = append(parts, s[start:i])
			start, space = i, false
		}
	}
	return append(parts, s[start:])
}
