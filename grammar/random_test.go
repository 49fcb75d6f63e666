package grammar

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/internal/limits/runtest"
)

// raceFactor divides the work of the long tests under the race detector, except in a long run.
var raceFactor = func() int {
	if runtest.Race && !runtest.Long() {
		return 12
	}
	return 1
}()

var schemas = flag.Int("schemas", 2400/raceFactor, "number of random schemas")

// randomSchema is a random schema and a generator of random valid documents, as json.dumps writes them.
type randomSchema struct {
	text     string
	document func() string
}

// schemaMaker makes random schemas of the supported keywords.
type schemaMaker struct {
	r    *rand.Rand
	defs []string // definitions that schemas may refer to
}

var stringSamples = map[string][]string{
	`"pattern": "^[a-c]{1,4}-[0-9]+$"`:      {"a-1", "abc-123456"},
	`"pattern": "b+"`:                       {"b", "abc", "xbby\n\"", "éb"},
	`"pattern": "^(foo|bar)?$"`:             {"", "foo", "bar"},
	`"pattern": "^[^\"]*$"`:                 {"", "x\\y\t", "日本 😀"},
	`"pattern": "^\\S+@\\S+$"`:              {"a@b", "é@\\"},
	`"pattern": "^x|y$"`:                    {"x", "xy", "ay"},
	`"format": "date"`:                      {"2024-02-29", "1999-12-31"},
	`"format": "time"`:                      {"12:30:00Z", "23:59:59.25+02:00"},
	`"format": "date-time"`:                 {"2024-02-29T12:30:00Z"},
	`"format": "duration"`:                  {"P1D", "PT1H2M3S", "P2W"},
	`"format": "email"`:                     {"a.b@example.com"},
	`"format": "hostname"`:                  {"example.com", "a-b"},
	`"format": "ipv4"`:                      {"192.168.0.1"},
	`"format": "ipv6"`:                      {"::1", "2001:db8::8:800:200c:417a"},
	`"format": "uuid"`:                      {"123e4567-e89b-12d3-a456-426614174000"},
	`"format": "uri"`:                       {"https://example.com/a%20b?c#d"},
	`"format": "json-pointer"`:              {"", "/a/0/~1"},
	`"pattern": "^[a-z]+$", "maxLength": 5`: {"a", "abcde"},
}

func quote(s string, ascii bool) string { return string(jsontext.AppendString(nil, s, ascii)) }

func (m *schemaMaker) pick(list ...string) string { return list[m.r.IntN(len(list))] }

func (m *schemaMaker) text() string {
	letters := []rune("ab \"\\\n\té日😀/'\x7f\x01z")
	out := make([]rune, m.r.IntN(6))
	for i := range out {
		out[i] = letters[m.r.IntN(len(letters))]
	}
	return string(out)
}

func (m *schemaMaker) make(depth int) randomSchema {
	kinds := []func(int) randomSchema{m.integer, m.number, m.str, m.patterned, m.literal, m.simple}
	if depth > 0 {
		kinds = append(kinds, m.array, m.array, m.tuple, m.object, m.object, m.object,
			m.anyOf, m.allOf, m.oneOf, m.mapping, m.reference)
	}
	return kinds[m.r.IntN(len(kinds))](depth)
}

func (m *schemaMaker) simple(int) randomSchema {
	switch m.r.IntN(5) {
	case 0:
		return randomSchema{`{"type": "null"}`, func() string { return "null" }}
	case 1:
		return randomSchema{`{"type": "boolean"}`, func() string { return m.pick("true", "false") }}
	case 2:
		return randomSchema{`{"type": ["integer", "null"]}`, func() string {
			return m.pick("null", "-7", "1234567890123456789")
		}}
	case 3:
		return randomSchema{m.pick(`true`, `{}`, `{"description": "anything"}`),
			func() string { return m.pick(`{"a": [1, {}]}`, `[]`, `"x"`, `null`, `-1.5e-07`) }}
	}
	return randomSchema{`{"type": "string"}`, func() string { return quote(m.text(), m.r.IntN(2) == 0) }}
}

func (m *schemaMaker) integer(int) randomSchema {
	lo := m.r.Int64N(2000) - 1000
	hi := lo + m.r.Int64N([]int64{1, 20, 5000, 1e15}[m.r.IntN(4)])
	step := int64(1)
	s := fmt.Sprintf(`{"type": "integer", "minimum": %d, "maximum": %d}`, lo, hi)
	if m.r.IntN(3) == 0 {
		step = 1 + m.r.Int64N(12)
		hi = lo + 2*step + m.r.Int64N(1000)
		const format = `{"type": "integer", "exclusiveMinimum": %d, "exclusiveMaximum": %d, "multipleOf": %d}`
		s = fmt.Sprintf(format, lo-1, hi+1, step)
	}
	return randomSchema{s, func() string {
		for {
			n := lo + m.r.Int64N(hi-lo+1)
			if n -= n % step; n >= lo && n <= hi {
				return strconv.FormatInt(n, 10)
			}
		}
	}}
}

func (m *schemaMaker) number(int) randomSchema {
	python := func(x float64) string {
		s := strconv.FormatFloat(x, 'g', -1, 64)
		return s
	}
	if m.r.IntN(2) == 0 {
		return randomSchema{`{"type": "number"}`, func() string {
			x := (m.r.Float64() - 0.5) * []float64{1, 1e-300, 1e300, 1e10}[m.r.IntN(4)]
			return python(x)
		}}
	}
	lo := float64(m.r.IntN(100)-50) / 4
	hi := lo + float64(1+m.r.IntN(400))/8
	return randomSchema{fmt.Sprintf(`{"type": "number", "minimum": %v, "maximum": %v}`, lo, hi), func() string {
		for {
			x := lo + m.r.Float64()*(hi-lo)
			if m.r.IntN(2) == 0 {
				x = float64(int(x*100)) / 100
			}
			if s := python(x); x >= lo && x <= hi && !strings.Contains(s, "e") {
				return s
			}
		}
	}}
}

func (m *schemaMaker) str(int) randomSchema {
	least := m.r.IntN(4)
	most := least + m.r.IntN(30)
	return randomSchema{fmt.Sprintf(`{"type": "string", "minLength": %d, "maxLength": %d}`, least, most), func() string {
		s := []rune(m.text() + m.text())
		for len(s) < least {
			s = append(s, 'x')
		}
		return quote(string(s[:min(len(s), most)]), m.r.IntN(2) == 0)
	}}
}

func (m *schemaMaker) patterned(int) randomSchema {
	var keys []string
	for k := range stringSamples {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	k := keys[m.r.IntN(len(keys))]
	return randomSchema{`{"type": "string", ` + k + `}`, func() string {
		return quote(m.pick(stringSamples[k]...), false)
	}}
}

func (m *schemaMaker) literal(int) randomSchema {
	var words []string
	for range 1 + m.r.IntN(5) {
		words = append(words, m.pick(`null`, `true`, `1`, `-2.5`, quote(m.text(), false), quote(m.text()+"x", false),
			`[1, {"a": "é"}]`, `{"k": []}`, `"a"`, `"ab"`, `"abc"`))
	}
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) == 1 {
		return randomSchema{`{"const": ` + words[0] + `}`, func() string { return words[0] }}
	}
	return randomSchema{`{"enum": [` + strings.Join(words, ", ") + `]}`, func() string { return m.pick(words...) }}
}

func (m *schemaMaker) list(n int, document func() string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = document()
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (m *schemaMaker) array(depth int) randomSchema {
	item := m.make(depth - 1)
	least := m.r.IntN(3)
	most := least + m.r.IntN(4)
	s := `{"type": "array", "items": ` + item.text
	if m.r.IntN(3) > 0 {
		s += fmt.Sprintf(`, "minItems": %d, "maxItems": %d`, least, most)
	}
	return randomSchema{s + "}", func() string { return m.list(least+m.r.IntN(most-least+1), item.document) }}
}

func (m *schemaMaker) tuple(depth int) randomSchema {
	var parts []randomSchema
	var texts []string
	for range 1 + m.r.IntN(3) {
		p := m.make(depth - 1)
		parts = append(parts, p)
		texts = append(texts, p.text)
	}
	least := m.r.IntN(len(parts) + 1)
	const format = `{"type": "array", "prefixItems": [%s], "items": false, "minItems": %d}`
	return randomSchema{fmt.Sprintf(format, strings.Join(texts, ", "), least), func() string {
		i := 0
		return m.list(least+m.r.IntN(len(parts)-least+1), func() string { i++; return parts[i-1].document() })
	}}
}

func (m *schemaMaker) object(depth int) randomSchema {
	names := []string{"name", "id", "a", "ab", "é", "x\"y", ""}
	m.r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	names = names[:m.r.IntN(5)]
	var parts []randomSchema
	var texts, required []string
	for _, n := range names {
		p := m.make(depth - 1)
		parts = append(parts, p)
		texts = append(texts, quote(n, false)+": "+p.text)
		if m.r.IntN(2) == 0 {
			required = append(required, quote(n, false))
		}
	}
	var other *randomSchema
	s := `{"type": "object", "properties": {` + strings.Join(texts, ", ") +
		`}, "required": [` + strings.Join(required, ", ") + `]`
	switch m.r.IntN(3) {
	case 0:
		s += `, "additionalProperties": false`
	case 1:
		o := m.make(depth - 1)
		other = &o
		s += `, "additionalProperties": ` + o.text
	}
	return randomSchema{s + "}", func() string {
		var members []string
		for i, n := range names {
			key := quote(n, false)
			if slices.Contains(required, key) || m.r.IntN(2) == 0 {
				members = append(members, key+": "+parts[i].document())
			}
		}
		for i := range m.r.IntN(3) {
			if other != nil {
				members = append(members, quote("other"+strconv.Itoa(i), false)+": "+other.document())
			}
		}
		return "{" + strings.Join(members, ", ") + "}"
	}}
}

func (m *schemaMaker) mapping(depth int) randomSchema {
	v := m.make(depth - 1)
	least := m.r.IntN(2)
	const format = `{"type": "object", "additionalProperties": %s, "minProperties": %d, "maxProperties": 3}`
	return randomSchema{fmt.Sprintf(format, v.text, least), func() string {
		var members []string
		for i := range least + m.r.IntN(3) {
			members = append(members, quote(m.text()+strconv.Itoa(i), false)+": "+v.document())
		}
		return "{" + strings.Join(members, ", ") + "}"
	}}
}

func (m *schemaMaker) anyOf(depth int) randomSchema {
	a, b := m.make(depth-1), m.make(depth-1)
	return randomSchema{`{"anyOf": [` + a.text + `, ` + b.text + `]}`, func() string {
		if m.r.IntN(2) == 0 {
			return a.document()
		}
		return b.document()
	}}
}

func (m *schemaMaker) oneOf(depth int) randomSchema {
	a, b := m.array(depth), m.str(depth)
	c := m.object(depth)
	return randomSchema{`{"oneOf": [` + a.text + `, ` + b.text + `, ` + c.text + `]}`, func() string {
		return []func() string{a.document, b.document, c.document}[m.r.IntN(3)]()
	}}
}

func (m *schemaMaker) allOf(depth int) randomSchema {
	a := m.object(depth)
	return randomSchema{`{"allOf": [` + a.text + `, {"type": ["object", "string"], "minProperties": 0}], "title": "both"}`,
		a.document}
}

// reference refers to a definition of its own, or to the recursive list that all schemas have.
func (m *schemaMaker) reference(depth int) randomSchema {
	if m.r.IntN(3) == 0 || len(m.defs) > 5 {
		return randomSchema{`{"$ref": "#/$defs/list"}`, func() string {
			return m.pick(`null`, `{"next": null}`, `{"next": {"next": null}, "n": 5}`,
				`{"next": {"next": {"next": null}, "n": -1}}`)
		}}
	}
	d := m.make(depth - 1)
	m.defs = append(m.defs, fmt.Sprintf(`"d%d": %s`, len(m.defs), d.text))
	return randomSchema{fmt.Sprintf(`{"$ref": "#/$defs/d%d"}`, len(m.defs)-1), d.document}
}

// root returns a schema with the definitions that it refers to.
func (m *schemaMaker) root(depth int) randomSchema {
	m.defs = nil
	s := m.make(depth)
	const list = `"list": {"anyOf": [{"type": "null"}, {"type": "object", ` +
		`"properties": {"next": {"$ref": "#/$defs/list"}, "n": {"type": "integer"}}, ` +
		`"required": ["next"], "additionalProperties": false}]}`
	defs := append(m.defs, list)
	s.text = `{"allOf": [` + s.text + `], "$defs": {` + strings.Join(defs, ", ") + `}}`
	return s
}

// Every text generated under a random schema validates, with ample and with tight budgets. Every valid document as
// json.dumps writes it is accepted.
func TestRandomSchemas(t *testing.T) {
	v := smallVocabulary()
	refused := 0
	for i := range *schemas {
		r := rand.New(rand.NewPCG(uint64(i), 99))
		m := &schemaMaker{r: r}
		s := m.root(1 + i%4)
		g, err := CompileSchema(context.Background(), []byte(s.text))
		if errors.Is(err, ErrUnsupported) && strings.Contains(err.Error(), "oneOf") {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("%d: %s: %v", i, s.text, err)
		}
		for range 3 {
			if doc := s.document(); !accepts(t, g, v, doc) {
				t.Fatalf("%d: %s refuses %s", i, s.text, doc)
			}
		}
		valid := validator(t, s.text)
		least := fewest(t, g, v)
		for k := range 6 {
			budget := least + k*k
			if k == 5 {
				budget += 40
			}
			text := write(t, g, v, budget, r)
			if !json.Valid([]byte(text)) {
				t.Fatalf("%d: %s: wrote %q", i, s.text, text)
			}
			if err := validate(valid, text); err != nil {
				t.Fatalf("%d: %s: wrote %s: %v", i, s.text, text, err)
			}
		}
		if least > 0 {
			if _, err := g.Matcher(v, least-1); !errors.Is(err, ErrBudget) {
				t.Fatalf("%d: %s with one token less than %d: %v", i, s.text, least, err)
			}
		}
	}
	if refused > *schemas/10 {
		t.Errorf("%d of %d schemas were refused", refused, *schemas)
	}
}
