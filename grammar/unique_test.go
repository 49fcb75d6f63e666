package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
)

func unique(items string) string { return `{"type": "array", "uniqueItems": true, ` + items + `}` }

var uniqueCases = []struct {
	schema  string
	yes, no []string
}{
	{unique(`"items": {"type": "string"}`), []string{`[]`, `["a", "b"]`, `["a", "A", "aa", ""]`, `["\u00e9", "e"]`},
		[]string{`["a", "a"]`, `["a", "b", "a"]`, `["é", "\u00e9"]`, `["😀", "\ud83d\ude00"]`, `["", ""]`,
			`["\n", "\u000a"]`}},
	{unique(`"items": {"type": "integer", "minimum": 0, "maximum": 20}`), []string{`[1, 11, 10, 0]`, `[20]`},
		[]string{`[1, 1]`, `[0, 10, 0]`, `[11, 1, 11]`}},
	{unique(`"items": {"type": "number"}`), []string{`[1, 10, 0.1, 1.5, -1]`, `[1e5, 1e6]`},
		[]string{`[1, 1.0]`, `[100, 1e2]`, `[0.5, 5e-1]`, `[0, -0]`, `[-0.0, 0]`, `[1.50, 1.5]`}},
	{unique(`"items": true`), []string{`[1, "1", [1], {"a": 1}, true, null]`, `[[], {}]`, `[{"a": 1}, {"a": 2}]`,
		`[{"a": 1}, {"b": 1}]`, `[[1, 2], [2, 1]]`, `[[[1]], [1]]`},
		[]string{`[null, null]`, `[[1], [1]]`, `[{"a": 1, "b": 2}, {"b": 2, "a": 1}]`, `[{"a": [1]}, {"a": [1.0]}]`,
			`[{}, 1, {}]`, `[false, true, false]`}},
	{unique(`"items": {"enum": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "ab"]}, "minItems": 3`),
		[]string{`["a", "ab", "b"]`}, []string{`["a", "b"]`, `["ab", "b", "ab"]`}},
	{unique(`"prefixItems": [{"type": "boolean"}, {"type": "boolean"}], "items": {"type": "integer"}`),
		[]string{`[true, false]`, `[true]`, `[true, false, 1, 2]`}, []string{`[true, true]`, `[true, false, 1, 1]`}},
	{unique(`"items": {"type": "array", "uniqueItems": true, "items": {"type": "integer"}}`),
		[]string{`[[1, 2], [2, 1]]`, `[[], [1]]`}, []string{`[[1], [1]]`, `[[1, 1]]`, `[[], []]`}},
	{unique(`"items": {"type": "object", "properties": {"k": {"enum": ["x", "y"]}, "n": {"type": "string"}}, ` +
		`"required": ["k"], "additionalProperties": false}`),
		[]string{`[{"k": "x"}, {"k": "y"}]`, `[{"k": "x", "n": "x"}, {"k": "x"}]`},
		[]string{`[{"k": "x"}, {"k": "x"}]`, `[{"k": "x", "n": "\u0061"}, {"k": "x", "n": "a"}]`}},
	{`{"anyOf": [` + unique(`"items": {"type": "integer"}`) + `, {"type": "array", "items": {"type": "integer"}, ` +
		`"maxItems": 2}]}`, []string{`[1, 1]`, `[1, 2, 3]`}, []string{`[1, 2, 1]`, `[1, 1, 1]`}},
	{unique(`"items": {"type": "integer"}, "contains": {"minimum": 5}, "maxContains": 2`), []string{`[1, 5, 6]`},
		[]string{`[1, 2]`, `[5, 5]`, `[5, 6, 7]`}},
	{`{"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}}`,
		[]string{`{"a": 1, "b": 1, "ab": 1}`}, []string{`{"a": 1, "b": 2}`, `{"a": 1, "b": 2, "a": 3}`, `{"a": 1, "a": 1, ` +
			`"b": 1}`}},
	{`{"type": "object", "properties": {"k": {"type": "array"}}, "minProperties": 3, "maxProperties": 4, ` +
		`"propertyNames": {"pattern": "^[a-kA-K]{1,2}$"}, "additionalProperties": {"type": "object", "minProperties": 2}}`,
		[]string{`{"k": [], "a": {"a": 1, "b": 2}, "b": {"a": 1, "b": 2}}`},
		[]string{`{"k": [], "a": {"a": 1, "a": 2}, "b": {"a": 1, "b": 2}}`, `{"k": [], "a": {"a": 1, "b": 2}}`}},
	{unique(`"items": {"enum": [1, 2, 3]}, "contains": {"const": 1}`), []string{`[1]`, `[2, 1]`},
		[]string{`[1, 1]`, `[2]`}},
}

// A text is accepted token by token, and as an instance, exactly if its items differ.
func TestUniqueItems(t *testing.T) {
	v := smallVocabulary()
	for _, c := range uniqueCases {
		g := compileSchema(t, c.schema)
		valid := validator(t, c.schema)
		for i, text := range append(slices.Clone(c.yes), c.no...) {
			want := i < len(c.yes)
			if (validate(valid, text) == nil) != want {
				t.Fatalf("%s: %s is valid: %v", c.schema, text, !want)
			}
			if got := accepts(t, g, v, text); got != want {
				t.Errorf("%s: %s is written: %v, want %v", c.schema, text, got, want)
			}
			if got, err := g.AcceptsJSON([]byte(text)); got != want || err != nil {
				t.Errorf("%s: %s is accepted: %v, want %v (%v)", c.schema, text, got, want, err)
			}
		}
	}
}

func compileSchema(t testing.TB, schema string) *Grammar {
	t.Helper()
	g, err := CompileSchema(t.Context(), []byte(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return g
}

// All texts that masks allow are valid, whatever the budget, and masks allow what Accept takes.
func TestUniqueWalks(t *testing.T) {
	v := smallVocabulary()
	r := rand.New(rand.NewPCG(27, 5))
	for _, c := range uniqueCases {
		g := compileSchema(t, c.schema)
		valid := validator(t, c.schema)
		least := fewest(t, g, v)
		for i := range 120 / raceFactor {
			text := write(t, g, v, least+i, r)
			if err := validate(valid, text); err != nil {
				t.Fatalf("%s: wrote %s: %v", c.schema, text, err)
			}
			m, err := g.Matcher(v, -1)
			if err != nil {
				t.Fatal(err)
			}
			if i%12 == 0 {
				tryMasks(t, m, v, r)
			}
		}
	}
}

// finite are schemas of few texts, and all their values as texts.
var finite = []struct {
	schema string
	items  []string
	least  int
}{
	{`{"enum": ["a", "ab", "abc", 1, 12, 123, true, [1], [1, 2], {"a": 1}, {"a": 12}]}`,
		[]string{`"a"`, `"ab"`, `"abc"`, `1`, `12`, `123`, `true`, `[1]`, `[1, 2]`, `{"a": 1}`, `{"a": 12}`}, 0},
	{`{"type": "integer", "minimum": 8, "maximum": 12}`, []string{`8`, `9`, `10`, `11`, `12`}, 3},
	{`{"type": "string", "pattern": "^[ab]{1,2}$"}`, []string{`"a"`, `"b"`, `"aa"`, `"ab"`, `"ba"`, `"bb"`}, 0},
	{`{"type": "array", "items": {"type": "boolean"}, "maxItems": 2, "uniqueItems": true}`,
		[]string{`[]`, `[true]`, `[false]`, `[true, false]`, `[false, true]`}, 2},
	{`{"type": "object", "properties": {"k": {"enum": [1, 12]}, "m": {"type": "boolean"}}, "required": ["k"], ` +
		`"additionalProperties": false}`, []string{`{"k": 1}`, `{"k": 12}`, `{"k": 1, "m": true}`, `{"k": 12, "m": true}`,
		`{"k": 1, "m": false}`, `{"k": 12, "m": false}`}, 4},
	{`{"type": "array", "uniqueItems": true, "items": {"type": "integer", "minimum": 1, "maximum": 3}}`, []string{`[]`,
		`[1]`, `[2]`, `[3]`, `[1, 2]`, `[1, 3]`, `[2, 1]`, `[2, 3]`, `[3, 1]`, `[3, 2]`, `[1, 2, 3]`, `[1, 3, 2]`,
		`[2, 1, 3]`, `[2, 3, 1]`, `[3, 1, 2]`, `[3, 2, 1]`}, 0},
}

// A mask has exactly the tokens after which some text of the language remains, also where the items run out: the
// language is enumerated.
func TestUniqueMasksAreExact(t *testing.T) {
	v := smallVocabulary()
	r := rand.New(rand.NewPCG(3, 27))
	for _, c := range finite {
		g := compileSchema(t, fmt.Sprintf(`{"type": "array", "uniqueItems": true, "minItems": %d, "items": %s}`, c.least,
			c.schema))
		for range 6 / min(raceFactor, 6) {
			m, err := g.Matcher(v, -1)
			if err != nil {
				t.Fatal(err)
			}
			var text []byte
			for {
				ids := checkMask(t, m, v, -1, text)
				var want []int32
				for id := range int32(v.Size()) {
					if b := v.Bytes(id); len(b) > 0 && begins(c.items, c.least, string(text)+string(b)) {
						want = append(want, id)
					}
				}
				if !slices.Equal(ids, want) {
					t.Fatalf("%s: after %q: the mask is %q, want %q", c.schema, text, spell(v, ids), spell(v, want))
				}
				if len(ids) == 0 {
					break
				}
				longer := slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return v.Bytes(id)[0] == ']' })
				if len(longer) > 0 && r.IntN(20) > 0 { // long arrays use up the items
					ids = longer
				}
				id := ids[r.IntN(len(ids))]
				if err := m.Accept(id); err != nil {
					t.Fatal(err)
				}
				text = append(text, v.Bytes(id)...)
			}
			if !m.Done() {
				t.Fatalf("%s: stopped after %q", c.schema, text)
			}
		}
	}
}

func spell(v *Vocabulary, ids []int32) (out []string) {
	for _, id := range ids {
		out = append(out, string(v.Bytes(id)))
	}
	return out
}

// begins reports whether an array of different items of a list has a prefix.
func begins(items []string, least int, prefix string) bool {
	rest, ok := strings.CutPrefix(prefix, "[")
	if !ok || prefix == "" {
		return prefix == ""
	}
	used := make([]bool, len(items))
	var from func(rest string, n int) bool
	from = func(rest string, n int) bool {
		if rest == "]" {
			return n >= least
		}
		if rest == "" {
			return n >= least || slices.Contains(used, false)
		}
		if n > 0 {
			if strings.HasPrefix(", ", rest) {
				return slices.Contains(used, false)
			}
			if rest, ok = strings.CutPrefix(rest, ", "); !ok {
				return false
			}
		}
		for i, item := range items {
			if used[i] {
				continue
			}
			if len(rest) <= len(item) && strings.HasPrefix(item, rest) {
				if len(items) >= least {
					return true
				}
			}
			if after, ok := strings.CutPrefix(rest, item); ok && after != "" {
				used[i] = true
				found := from(after, n+1)
				used[i] = false
				if found {
					return true
				}
			}
		}
		return false
	}
	return from(rest, 0)
}

// Clones go on independently.
func TestUniqueClones(t *testing.T) {
	v := smallVocabulary()
	m, err := compileSchema(t, unique(`"items": {"type": "string"}`)).Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	write := func(m *Matcher, text string) bool {
		for _, b := range []byte(text) {
			if m.Accept(int32(b)) != nil {
				return false
			}
		}
		return true
	}
	if !write(m, `["a", "b`) {
		t.Fatal("refused")
	}
	a, b := m.Clone(), m.Clone()
	if !write(a, `c", "b", "bc`) || write(a, `"`) || !write(b, `", "bc", "c"]`) || !b.Done() || !write(a, `d"]`) {
		t.Error("clones share their items")
	}
	if !write(m, `c", "b", "c"]`) || !m.Done() {
		t.Error("a clone changed the matcher")
	}
}

// An array ends at the limit.
func TestUniqueItemsLimit(t *testing.T) {
	v := smallVocabulary()
	g := compileSchema(t, unique(`"items": {"type": "integer"}`))
	var b strings.Builder
	for i := range limits.GrammarUniqueItems {
		fmt.Fprintf(&b, ", %d", i)
	}
	most := "[" + b.String()[2:]
	if !accepts(t, g, v, most+"]") || accepts(t, g, v, most+", -1]") || accepts(t, g, v, most+", ") {
		t.Error("the limit is another one")
	}
	for text, want := range map[string]bool{most + "]": true, most + ", -1]": false} {
		if got, err := g.AcceptsJSON([]byte(text)); got != want || err != nil {
			t.Errorf("%d bytes: %v, %v", len(text), got, err)
		}
	}
	_, err := CompileSchema(t.Context(), []byte(fmt.Sprintf(`{"type": "array", "uniqueItems": true, "minItems": %d}`,
		limits.GrammarUniqueItems+1)))
	if !errors.Is(err, ErrLimit) {
		t.Errorf("minItems beyond the limit: %v", err)
	}
}

// Arrays that need more values than their items have are empty, or refused where that depends on other items.
func TestUniqueTooFew(t *testing.T) {
	named := func(rest string) string {
		return `{"type": "object", "minProperties": 3, "propertyNames": ` + rest + `}`
	}
	for schema, want := range map[string]error{
		unique(`"items": {"type": "integer", "minimum": 1, "maximum": 30}, "minItems": 31`): ErrEmpty,
		unique(`"items": {"type": "integer", "minimum": 1, "maximum": 30}, "minItems": 30`): nil,
		unique(`"items": {"type": "string", "pattern": "^[a-z]$"}, "minItems": 27`):         ErrEmpty,
		unique(`"items": {"type": "string", "pattern": "^[a-z]$"}, "minItems": 26`):         nil,
		unique(`"items": {"type": "string"}, "minItems": 100`):                              nil,
		unique(`"items": {"type": "object"}, "minItems": 20`):                               nil,
		unique(`"prefixItems": [{}, {"const": 1}], "minItems": 2`):                          ErrUnsupported,
		named(`{"maxLength": 0}`):                                                   ErrEmpty,
		named(`{"enum": ["a", "b", "c"]}`):                                          nil,
		named(`{"enum": ["a", "b", "c"]}, "properties": {"a": {}}`):                 ErrUnsupported,
		unique(`"prefixItems": [{"const": 1}, {"type": "boolean"}], "minItems": 2`): nil,
	} {
		if _, err := CompileSchema(t.Context(), []byte(schema)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", schema, err, want)
		}
	}
}

// In a grammar that leaves open where JSON begins, some reading of the text must have items that differ.
func TestUniqueReadings(t *testing.T) {
	v := smallVocabulary()
	g, err := CompileEBNF(t.Context(), `root ::= [^x]* %json {"type": "array", "uniqueItems": true, "items": {"enum": [`+
		`1, 2, "[", "]", "a", 3, 4, 5, 6, 7, 8, 9]}}`)
	if err != nil {
		t.Fatal(err)
	}
	items := regexp.MustCompile(`^\[(?:(?:[1-9]|"[\[\]a]")(?:, (?:[1-9]|"[\[\]a]"))*)?\]$`)
	want := func(text string) bool {
		for i := range text {
			var all []any
			if !items.MatchString(text[i:]) || json.Unmarshal([]byte(text[i:]), &all) != nil {
				continue
			}
			seen := map[any]bool{}
			for _, item := range all {
				seen[item] = true
			}
			if len(seen) == len(all) {
				return true
			}
		}
		return false
	}
	r := rand.New(rand.NewPCG(9, 27))
	parts := []string{"[", "]", "[1, 2", ", 1", ", 2", `, "["`, `"a"`, `, "]"`, `"`, "1", "]", "[1]", `["a"`}
	accepted := 0
	for range 20000 / raceFactor {
		text := ""
		for range 1 + r.IntN(7) {
			text += parts[r.IntN(len(parts))]
		}
		text += "]"
		got := accepts(t, g, v, text)
		if got != want(text) {
			t.Fatalf("%s is accepted: %v", text, got)
		}
		if got {
			accepted++
		}
	}
	if accepted < 100/raceFactor {
		t.Errorf("%d texts are accepted", accepted)
	}
}
