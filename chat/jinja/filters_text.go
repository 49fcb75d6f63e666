package jinja

import (
	"regexp"
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
	s, err := r.softString(v[0])
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
	if s, ok := text(v[0]); ok {
		return quoteURL(s, "/"), r.alloc(3 * len(s))
	}
	var pairs []Value
	if d, ok := v[0].(*Dict); ok {
		for i := range d.keys {
			pairs = append(pairs, tuple(d.keys[i], d.values[i]))
		}
	} else if err := iterable(v[0]); err != nil {
		s, err := r.str(v[0])
		return quoteURL(s, "/"), err
	} else if pairs, err = collect(r, v[0]); err != nil {
		return nil, err
	}
	parts := make([]string, len(pairs))
	for i, p := range pairs {
		kv, err := collect(r, p)
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

func filterXMLAttr(r *run, v []Value) (Value, error) {
	d, ok := v[0].(*Dict)
	if !ok {
		if u, is := v[0].(*undefined); is {
			return nil, u.fail()
		}
		return nil, raise("AttributeError", "'%s' object has no attribute 'items'", typeName(v[0]))
	}
	var parts []string
	for i, k := range d.keys {
		x := d.values[i]
		if _, is := x.(*undefined); is || x == nil {
			continue
		}
		name, ok := text(k)
		if !ok {
			return nil, typeError("expected string or bytes-like object, got '%s'", typeName(k))
		}
		if strings.ContainsAny(name, " \t\n\r\f\v/>=") {
			return nil, valueError("Invalid character in attribute name: %s", quote(name))
		}
		value, err := r.escapeValue(x)
		if err != nil {
			return nil, err
		}
		key, _ := r.escapeValue(k)
		parts = append(parts, string(key)+`="`+string(value)+`"`)
	}
	s, err := r.join(parts, " ")
	if s != "" && (v[1] == missing || truth(v[1])) {
		s = " " + s
	}
	if r.escape {
		return Markup(s), err
	}
	return s, err
}

// Patterns of links for urlize.
var (
	httpLink = regexp.MustCompile(`(?i)^((https?://|www\.)(([\w%-]+\.)+)?([a-z]{2,63}|xn--[\w%]{2,59})` +
		`|([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil)` +
		`|(https?://)((([\d]{1,3})(\.[\d]{1,3}){3})|(\[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}\])))` +
		`(?::[\d]{1,5})?(?:[/?#]\S*)?$`)
	mailLink   = regexp.MustCompile(`^\S+@\w[\w.-]*\.\w+$`)
	linkHead   = regexp.MustCompile(`^([(<]|&lt;)+`)
	linkTail   = regexp.MustCompile(`([)>.,\n]|&gt;)+$`)
	linkScheme = regexp.MustCompile(`^([\w.+-]{2,}:(/){0,2})$`)
)

func filterURLize(r *run, v []Value) (Value, error) {
	limit := int64(-1)
	if v[1] != missing && v[1] != nil {
		var err error
		if limit, err = clampInt(v[1]); err != nil {
			return nil, err
		}
	}
	rel := map[string]bool{"noopener": true}
	if v[4] != missing && v[4] != nil {
		s, err := needText(v[4], "rel")
		if err != nil {
			return nil, err
		}
		for _, w := range splitSpace(s, -1) {
			rel[w] = true
		}
	}
	if isTrue(v[2]) {
		rel["nofollow"] = true
	}
	var words []string
	for w := range rel {
		words = append(words, w)
	}
	slices.Sort(words)
	attrs := ` rel="` + escapeHTML(strings.Join(words, " ")) + `"`
	if v[3] != missing && truth(v[3]) {
		m, err := r.escapeValue(v[3])
		if err != nil {
			return nil, err
		}
		attrs += ` target="` + string(m) + `"`
	}
	var schemes []string
	if v[5] != missing && v[5] != nil {
		items, err := collect(r, v[5])
		if err != nil {
			return nil, err
		}
		for _, x := range items {
			s, err := needText(x, "scheme")
			if err != nil {
				return nil, err
			}
			if !linkScheme.MatchString(s) {
				return nil, raise("FilterArgumentError", "%s is not a valid URI scheme prefix.", quote(s))
			}
			schemes = append(schemes, s)
		}
	}
	escaped, err := r.escapeValue(v[0])
	if err != nil {
		return nil, err
	}
	r.work(len(escaped))
	var b strings.Builder
	for s := string(escaped); s != ""; {
		n := strings.IndexFunc(s, isSpace)
		if n < 0 {
			n = len(s)
		}
		b.WriteString(linkWord(s[:n], attrs, limit, schemes))
		s = s[n:]
		space := len(s) - len(strings.TrimLeftFunc(s, isSpace))
		b.WriteString(s[:space])
		s = s[space:]
		if err := r.alloc(2*n + 100); err != nil {
			return nil, err
		}
	}
	if r.escape {
		return Markup(b.String()), nil
	}
	return b.String(), nil
}

// linkWord turns a word into a link if it looks like one.
func linkWord(word, attrs string, limit int64, schemes []string) string {
	head := linkHead.FindString(word)
	middle, tail := word[len(head):], ""
	if at := linkTail.FindStringIndex(middle); at != nil {
		middle, tail = middle[:at[0]], middle[at[0]:]
	}
	for _, p := range [][2]string{{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}} {
		starts := strings.Count(middle, p[0])
		if starts <= strings.Count(middle, p[1]) {
			continue
		}
		for range min(starts, strings.Count(tail, p[1])) {
			at := strings.Index(tail, p[1]) + len(p[1])
			middle, tail = middle+tail[:at], tail[at:]
		}
	}
	shown := middle
	if limit >= 0 && int64(runeCount(shown)) > limit {
		shown = substring(shown, 0, int(limit)) + "..."
	}
	switch {
	case httpLink.MatchString(middle):
		to := middle
		if !strings.HasPrefix(middle, "https://") && !strings.HasPrefix(middle, "http://") {
			to = "https://" + middle
		}
		middle = `<a href="` + to + `"` + attrs + `>` + shown + `</a>`
	case strings.HasPrefix(middle, "mailto:") && mailLink.MatchString(middle[7:]):
		middle = `<a href="` + middle + `">` + middle[7:] + `</a>`
	case strings.Contains(middle, "@") && !strings.HasPrefix(middle, "www.") && !strings.HasPrefix(middle, "@") &&
		!strings.Contains(middle, ":") && mailLink.MatchString(middle):
		middle = `<a href="mailto:` + middle + `">` + middle + `</a>`
	default:
		for _, s := range schemes {
			if middle != s && strings.HasPrefix(middle, s) {
				middle = `<a href="` + middle + `"` + attrs + `>` + middle + `</a>`
			}
		}
	}
	return head + middle + tail
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
	s, ok := text(v[0])
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
	keys := slices.Clone(d.keys)
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
		for i, k := range x.keys {
			last := i == len(x.keys)-1
			key, err := p.r.repr(k)
			if err != nil {
				return err
			}
			p.b.WriteString(key + ": ")
			more := 1
			if last {
				more = allowance + 1
			}
			if err := p.print(x.values[i], indent+runeCount(key)+3, more, depth+1); err != nil {
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
