package grammar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
)

func ebnfOf(ctx context.Context, source string) error {
	_, err := CompileEBNF(ctx, source)
	return err
}

func regexOf(ctx context.Context, source string) error {
	_, err := CompileRegex(ctx, source)
	return err
}

func schemaOf(ctx context.Context, source string) error {
	_, err := CompileSchema(ctx, []byte(source))
	return err
}

// numbered concatenates format for the numbers below n.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// At each limit a source compiles; one beyond it returns ErrLimit.
func TestGrammarLimits(t *testing.T) {
	rep := strings.Repeat
	for _, c := range []struct {
		name    string
		compile func(context.Context, string) error
		at      int
		make    func(n int) string
	}{
		{"a schema's text", schemaOf, limits.GrammarSource, func(n int) string { return "{}" + rep(" ", n-2) }},
		{"an EBNF's text", ebnfOf, limits.GrammarSource, func(n int) string { return `r ::= "a"` + rep(" ", n-9) }},
		{"a pattern's text", regexOf, limits.GrammarRegex, func(n int) string { return rep("a", n) }},
		{"a schema's pattern", schemaOf, limits.GrammarRegex,
			func(n int) string { return `{"type":"string","pattern":"` + rep("a", n) + `"}` }},
		{"groups", ebnfOf, limits.GrammarNesting, func(n int) string {
			return "r ::= " + rep("(", n) + `"a"` + rep(")", n)
		}},
		{"repetitions", ebnfOf, limits.GrammarNesting, func(n int) string { return `r ::= "a"` + rep("+", n) }},
		{"values", schemaOf, limits.GrammarNesting, func(n int) string { return rep(`{"items":`, n) + "{}" + rep("}", n) }},
		{"values in an annotation", schemaOf, limits.GrammarNesting - 1, func(n int) string {
			return `{"default":` + rep("[", n) + "1" + rep("]", n) + "}"
		}},
		{"rules", ebnfOf, limits.GrammarRules - 1, func(n int) string {
			return "root ::= " + numbered(n, "a%d ") + "\n" + numbered(n, "a%d ::= \"x\"\n")
		}},
		{"alternatives", ebnfOf, limits.GrammarAlternatives, func(n int) string { return `r ::= "a"` + rep(` | "a"`, n-1) }},
		{"times", ebnfOf, limits.GrammarRepeat, func(n int) string { return fmt.Sprintf(`r ::= "a"{%d}`, n) }},
		{"places", ebnfOf, limits.GrammarPlaces - 3, func(n int) string { return `r ::= "` + rep("a", n) + `"` }},
		{"schemas", schemaOf, limits.GrammarSchemas / 50, func(n int) string {
			if n > limits.GrammarSchemas/50 {
				n = limits.GrammarSchemas
			}
			return `{"allOf":[` + rep("{},", n-1) + "{}]}"
		}},
	} {
		if err := c.compile(t.Context(), c.make(c.at)); err != nil {
			t.Errorf("%s: %d: %v", c.name, c.at, err)
		}
		if err := c.compile(t.Context(), c.make(c.at+1)); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %d: got %v, want ErrLimit", c.name, c.at+1, err)
		}
	}
}

// Sources that once were slow, used too much memory or crashed the process compile or return one short error.
func TestHostileSources(t *testing.T) {
	rep := strings.Repeat
	for _, c := range []struct {
		name    string
		compile func(context.Context, string) error
		source  string
		want    string // "": no error
	}{
		{"a limit above all numbers", schemaOf, `{"type":"number","minimum":1e30}`, "no value"},
		{"a limit below all numbers", schemaOf, `{"type":"integer","maximum":-1e400}`, "no value"},
		{"stars", ebnfOf, `r ::= "a"` + rep("*", 1_000_000), "nested repetitions"},
		{"counted repetitions", ebnfOf, `r ::= "a"` + rep("{0,16777216}", 80_000), "nested repetitions"},
		{"open groups", ebnfOf, "r ::= " + rep("(", 1_000_000), "levels"},
		{"a chain of rules", ebnfOf, ruleChain(40_000), "more than"},
		{"a cycle of rules", ebnfOf, strings.Replace(ruleChain(1000), `"x"`, "a0", 1), "left-recursive"},
		{"many rules", ebnfOf, numbered(60_000, "a%d ::= \"x\"\n"), ""},
		{"alternatives", ebnfOf, "r ::= " + rep(`"a"|`, 200_000) + `"a"`, "alternatives"},
		{"groups of a pattern", regexOf, rep("(", 60_000), "invalid grammar"},
		{"a long pattern", regexOf, rep("(", 1_000_000), "at most"},
		{"repetitions of a pattern", regexOf, rep("(", 300) + "a" + rep("{0,1000})", 300), "invalid repeat count"},
		{"arrays", schemaOf, rep("[", 1_000_000), "levels"},
		{"objects", schemaOf, rep(`{"items":`, 100_000), "levels"},
		{"a long constant", schemaOf, `{"const":"` + rep("a", 200_000) + `"}`, ""},
		{"a long name", schemaOf, `{"properties":{"` + rep("a", 1_000_000) + `":{}},"additionalProperties":{}}`, "states"},
		{"required names", schemaOf, `{"required":[` + numbered(40_000, `"p%d",`) + `"z"]}`, "states"},
		{"references to an anchor", schemaOf, `{"anyOf":[` + rep(`{"$ref":"#z"},`, 5_000) + `{"$anchor":"z"}]}`,
			"alternatives"},
		{"two enums", schemaOf, `{"allOf":[{"enum":[` + numbered(40_000, `"w%d",`) + `1]},{"enum":[` + numbered(40_000,
			`"w%d",`) + `2]}]}`, ""},
		{"references in a circle", schemaOf,
			`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
			"no finite text"},
		{"references that double", schemaOf, doubling(100), "unfolds"},
		{"a chain of references", schemaOf, refChain(5000), ""},
	} {
		err := c.compile(t.Context(), c.source)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(),
			c.want) || len(err.Error()) > 1000) {
			t.Errorf("%s: got %.300v, want %q", c.name, err, c.want)
		}
	}
}

// ruleChain returns rules that each consist of the next one.
func ruleChain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d ::= a%d\n", i, i+1)
	}
	return b.String() + fmt.Sprintf("a%d ::= \"x\"", n)
}

func refChain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"a%d":{"$ref":"#/$defs/a%d"},`, i, i+1)
	}
	return `{"$ref":"#/$defs/a0","$defs":{` + b.String() + fmt.Sprintf(`"a%d":{"type":"null"}}}`, n)
}

// doubling returns definitions that each refer to the next one twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%[2]d"}]},`, i, i+1)
	}
	return `{"$ref":"#/$defs/a0","$defs":{` + b.String() + fmt.Sprintf(`"a%d":{}}}`, n)
}

func TestCompileCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		compile func(context.Context, string) error
		source  string
	}{{ebnfOf, `r ::= "a"`}, {regexOf, "a"}, {schemaOf, `{"type":"null"}`}} {
		if err := c.compile(ctx, c.source); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", c.source, err)
		}
	}
}

// An instance whose check takes too many steps is an error, not a verdict.
func TestAcceptsJSONLimit(t *testing.T) {
	g := JSON()
	for _, c := range []struct {
		length int
		want   error
	}{{limits.GrammarChecks / 16, nil}, {limits.GrammarChecks, ErrLimit}} {
		text := `"` + strings.Repeat("a", c.length) + `"`
		if ok, err := g.AcceptsJSON([]byte(text)); !errors.Is(err, c.want) || ok != (c.want == nil) {
			t.Errorf("%d characters: got %v, %v, want %v", c.length, ok, err, c.want)
		}
	}
}
