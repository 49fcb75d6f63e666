package builtin

import (
	"math"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// pprint returns Python's pprint.pformat(v) with sorted keys: a single line if it fits into 80 columns, otherwise one
// item per line.
func pprint(r *value.Run, v value.Value) (string, error) {
	p := &prettyPrinter{r: r}
	if err := p.print(v, 0, 0, 0); err != nil {
		return "", err
	}
	return p.b.String(), r.Alloc(p.b.Len())
}

type prettyPrinter struct {
	r *value.Run
	b strings.Builder
}

const prettyWidth = 80

// sorted returns v with the keys of dicts sorted.
func (p *prettyPrinter) sorted(v value.Value, depth int) (value.Value, error) {
	if depth > p.r.Limits.Depth {
		return nil, value.Raise("RecursionError", "maximum recursion depth exceeded")
	}
	items := func(in []value.Value) ([]value.Value, error) {
		out := make([]value.Value, len(in))
		for i, x := range in {
			var err error
			if out[i], err = p.sorted(x, depth+1); err != nil {
				return nil, err
			}
		}
		return out, p.r.Alloc(len(in) * value.Overhead)
	}
	switch x := v.(type) {
	case *value.List:
		l, err := items(x.Items)
		return &value.List{Items: l}, err
	case *value.Tuple:
		l, err := items(x.Items)
		return &value.Tuple{Items: l}, err
	case *value.Dict:
		keys, err := p.keys(x)
		if err != nil {
			return nil, err
		}
		d := value.NewDict()
		for _, k := range keys {
			y, _, _ := x.Lookup(k)
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
func (p *prettyPrinter) keys(d *value.Dict) ([]value.Value, error) {
	keys := slices.Clone(d.Keys())
	slices.SortStableFunc(keys, func(a, b value.Value) int {
		less, err := p.r.Ordered("<", a, b, 0)
		if err != nil {
			return strings.Compare(value.TypeName(a), value.TypeName(b))
		}
		if less {
			return -1
		}
		if less, _ = p.r.Ordered("<", b, a, 0); less {
			return 1
		}
		return 0
	})
	return keys, nil
}

func (p *prettyPrinter) print(v value.Value, indent, allowance, depth int) error {
	sorted, err := p.sorted(v, depth)
	if err != nil {
		return err
	}
	flat, err := p.r.Repr(sorted)
	if err != nil {
		return err
	}
	if value.RuneCount(flat) <= prettyWidth-indent-allowance {
		p.b.WriteString(flat)
		return nil
	}
	switch x := sorted.(type) {
	case *value.Dict:
		p.b.WriteByte('{')
		for i, k := range x.Keys() {
			last := i == len(x.Keys())-1
			key, err := p.r.Repr(k)
			if err != nil {
				return err
			}
			p.b.WriteString(key + ": ")
			more := 1
			if last {
				more = allowance + 1
			}
			if err := p.print(x.Values()[i], indent+value.RuneCount(key)+3, more, depth+1); err != nil {
				return err
			}
			if !last {
				p.b.WriteString(",\n" + strings.Repeat(" ", indent+1))
			}
		}
		p.b.WriteByte('}')
	case *value.List:
		return p.items("[", x.Items, "]", indent, allowance, depth)
	case *value.Tuple:
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

func (p *prettyPrinter) items(open string, items []value.Value, end string, indent, allowance, depth int) error {
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
	lines := splitLines(s, true, math.MaxInt64)
	for i, line := range lines {
		width := prettyWidth - indent
		if i == len(lines)-1 {
			width -= allowance
		}
		if q := value.Quote(line); value.RuneCount(q) <= width {
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
			if value.RuneCount(value.Quote(current+w)) > limit {
				if current != "" {
					chunks = append(chunks, value.Quote(current))
				}
				current = w
			} else {
				current += w
			}
		}
		if current != "" {
			chunks = append(chunks, value.Quote(current))
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
		if value.IsSpace(c) {
			space = true
		} else if space {
			parts = append(parts, s[start:i])
			start, space = i, false
		}
	}
	return append(parts, s[start:])
}
