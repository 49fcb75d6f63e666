package jinja

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/chat/chattest"
	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits/runtest"
)

var frozen = Options{Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }}

func render(t *testing.T, source string, vars []byte, o Options) (string, error) {
	t.Helper()
	v, err := DecodeVars(vars)
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := Compile(context.Background(), source)
	if err != nil {
		return "", err
	}
	return tmpl.Render(context.Background(), v, o)
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatal(err)
	}
}

// Every feature of the language renders, or fails, as in the reference.
func TestSnippets(t *testing.T) {
	var f struct {
		Vars  json.RawMessage
		Cases [][]string
	}
	readJSON(t, filepath.Join("testdata", "snippets.json"), &f)
	if len(f.Cases) < 5000 {
		t.Fatalf("%d cases", len(f.Cases))
	}
	for _, c := range f.Cases {
		got, err := render(t, c[0], f.Vars, frozen)
		switch {
		case len(c) == 1 && err == nil:
			t.Errorf("%s\n got %q, want an error", c[0], got)
		case len(c) == 2 && err != nil:
			t.Errorf("%s\n got %v, want %q", c[0], err, c[1])
		case len(c) == 2 && got != c[1]:
			t.Errorf("%s\n got  %q\n want %q", c[0], got, c[1])
		}
	}
}

// Published templates of models render as in the reference.
func TestPublishedTemplates(t *testing.T) {
	for _, set := range chattest.Sets(t) {
		t.Run(set.Name, func(t *testing.T) {
			for name, renders := range set.Renders {
				for vars, want := range renders {
					got, err := render(t, set.Templates[name], set.Contexts[vars], frozen)
					switch {
					case want.OK == nil && err == nil:
						t.Errorf("%s, %s: got no error, want %q", name, vars, *want.Err)
					case want.OK != nil && err != nil:
						t.Errorf("%s, %s: %v", name, vars, err)
					case want.OK != nil && got != *want.OK:
						t.Errorf("%s, %s:\n got  %q\n want %q", name, vars, got, *want.OK)
					}
				}
			}
		})
	}
}

// A conversation of several megabytes renders within the default limits with published templates.
func TestLongConversation(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `{"role":%q,"content":%q},`, []string{"user", "assistant"}[i%2],
			strings.Repeat("some \"words\"\n ", 285))
	}
	vars, err := DecodeVars([]byte(`{"messages":[` + b.String() +
		`{"role":"user","content":"x"}],"add_generation_prompt":true,` +
		`"bos_token":"<s>","eos_token":"</s>","tools":null}`))
	if err != nil {
		t.Fatal(err)
	}
	every := runtest.Pick(3, 1) // a third of the templates is enough
	for _, set := range chattest.Sets(t) {
		t.Run(set.Name, func(t *testing.T) {
			complete := 0
			for i, name := range slices.Sorted(maps.Keys(set.Templates)) {
				if i%every != 0 {
					continue
				}
				tmpl, err := Compile(t.Context(), set.Templates[name])
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				out, err := tmpl.Render(t.Context(), vars, frozen)
				if err != nil && (errors.Is(err, ErrLimit) || !errors.Is(err, ErrRender)) {
					t.Errorf("%s: %v", name, err)
				}
				if len(out) > 3<<20 {
					complete++
				}
			}
			if complete < 5 {
				t.Errorf("%d templates rendered the whole conversation", complete)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for _, source := range []string{
		"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
		"{% for a in range(100000) %}{{ 'x' * 100000 }}{% endfor %}",
		"{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}",
		"{{ 'x' * 99999999999 }}", "{{ [1] * 99999999999 }}", "{{ 'x'.center(99999999999) }}", "{{ '%999999999d' % 1 }}",
		"{{ '{:999999999}'.format(1) }}", "{{ 9 ** (9 ** 9) }}",
		"{{ 'a'|replace('', 'b' * 10000000)|replace('b', 'c' * 1000) }}",
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
		strings.Repeat("{% if true %}", 5000), "{{ " + strings.Repeat("(", 100000),
		"{{ " + strings.Repeat("-", 100000) + "1 }}",
		"{{ 1" + strings.Repeat("+1", 100000) + " }}", "{{ x" + strings.Repeat(".x", 100000) + " }}",
		"{{ 'a b '|tojson(indent=99999999999) }}", "{{ [[1]]|tojson(indent=99999999) }}",
		"{{ 'x'|indent(99999999999) }}",
		"{{ strftime_now('%999999999d') }}",
		"{% set ns = namespace(l=[]) %}{% for i in range(2000) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
		"{% set ns = namespace(l=[]) %}{% for i in range(2000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l == ns.l[0] }}" +
			"{{ ns.l|string }}",
	} {
		_, err := render(t, source, []byte("{}"), Options{Limits: Limits{Steps: 1 << 20, Memory: 64 << 20, Output: 8 << 20}})
		if err == nil {
			t.Errorf("%.60s: no error", source)
		}
	}
}

func TestCancel(t *testing.T) {
	tmpl, err := Compile(context.Background(),
		"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = tmpl.Render(ctx, nil, Options{Limits: Limits{Steps: 1 << 60}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		source, want string
		is           error
	}{
		{"a\n{{ 1 + }}", "template line 2: TemplateSyntaxError", ErrSyntax},
		{"\n\n{{ raise_exception('no\nway') }}", "template line 3: TemplateError: no way", ErrRender},
		{"{{ x.y }}", "template line 1: UndefinedError: 'x' is undefined", ErrRender},
		{"{% for i in [1] %}\n{{ 'a' + 1 }}{% endfor %}", "template line 2: TypeError", ErrRender},
		{"{{ [].append(1) }}", "SecurityError", ErrRender},
		{"{{ 'x' * 9999999999999 }}", "LimitError", ErrLimit},
	} {
		_, err := render(t, c.source, []byte("{}"), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.is) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want one line with %q that wraps %v", c.source, err, c.want, c.is)
		}
	}
}

// What no chat template can need fails with an error that names it.
func TestUnsupported(t *testing.T) {
	for _, tag := range []string{"autoescape", "block", "extends", "from", "import", "include"} {
		want := "TemplateSyntaxError: the tag '" + tag + "' is not supported in chat templates"
		_, err := render(t, "{% if 0 %}{% "+tag+" x %}{% endif %}", []byte("{}"), Options{})
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: got %v, want %q", tag, err, want)
		}
	}
	for _, c := range []struct{ source, want string }{
		{"{{ 'x'|e }}", "the filter 'e'"},
		{"{{ 'x'|escape }}", "the filter 'escape'"},
		{"{{ 'x'|forceescape }}", "the filter 'forceescape'"},
		{"{{ 'x'|striptags }}", "the filter 'striptags'"},
		{"{{ 'x'|urlize(10) }}", "the filter 'urlize'"},
		{"{{ {}|xmlattr }}", "the filter 'xmlattr'"},
		{"{{ ['x']|map('urlize')|list }}", "the filter 'urlize'"},
		{"{{ 'x' is escaped }}", "the test 'escaped'"},
		{"{{ lipsum(n=1) }}", "the function 'lipsum'"},
		{"{{ cycler('a', 'b').next() }}", "the function 'cycler'"},
		{"{{ [1]|batch(2)|list }}", "the filter 'batch'"},
		{"{{ 'x'|center }}", "the filter 'center'"},
		{"{{ 1|filesizeformat }}", "the filter 'filesizeformat'"},
		{"{{ []|groupby('a') }}", "the filter 'groupby'"},
		{"{{ {}|pprint }}", "the filter 'pprint'"},
		{"{{ [1]|random }}", "the filter 'random'"},
		{"{{ [1]|slice(2) }}", "the filter 'slice'"},
		{"{{ 'x'|urlencode }}", "the filter 'urlencode'"},
		{"{{ 'x'|wordcount }}", "the filter 'wordcount'"},
		{"{{ 'x'|wordwrap(5) }}", "the filter 'wordwrap'"},
	} {
		_, err := render(t, c.source, []byte("{}"), Options{})
		want := "template line 1: TemplateRuntimeError: " + c.want + " is not supported in chat templates"
		if err == nil || err.Error() != want || !errors.Is(err, ErrRender) {
			t.Errorf("%s: got %v, want %q", c.source, err, want)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"b": 1, "a": 2, "b": 3}`, "{'b': 3, 'a': 2}"},
		{`[1, 1.0, 1e2, -0, 123456789012345678901234567890, NaN, -Infinity]`,
			"[1, 1.0, 100.0, 0, 123456789012345678901234567890, nan, -inf]"},
		{`"\u00e9\ud83d\ude00\/\b"`, "'é😀/\\x08'"},
		{`"\ud83d"`, "'\ufffd'"},
		{` {"a" : [ ] , "c" : { } } `, "{'a': [], 'c': {}}"},
	} {
		v, err := DecodeJSON([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		r := value.NewRun(context.Background(), DefaultLimits(0), 0, nil)
		if got, _ := r.Repr(v); got != c.want {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
	}
	for _, in := range []string{"", "{", "[1,]", `{"a"}`, `{"a":1,}`, "01", "1.", "tru", `"a`, "\"\n\"", `"\x"`, "1 2",
		"\xff", strings.Repeat("[", 5000)} {
		if v, err := DecodeJSON([]byte(in)); !errors.Is(err, ErrInput) {
			t.Errorf("%.20q: got %v, %v, want ErrInput", in, v, err)
		}
	}
}

func TestConcurrentRenders(t *testing.T) {
	tmpl, err := Compile(context.Background(),
		"{% set ns = namespace(n=0) %}{% for m in l %}{% set ns.n = ns.n + m %}{% endfor %}{{ ns.n }}{{ d|tojson }}")
	if err != nil {
		t.Fatal(err)
	}
	vars, err := DecodeVars([]byte(`{"l": [1, 2, 3], "d": {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, ` +
		`"h": 8, "i": 9}}`))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				got, err := tmpl.Render(context.Background(), vars, Options{})
				if err != nil || !strings.HasPrefix(got, `6{"a": 1,`) {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

// Compile and Render neither panic nor hang nor produce more output than the limit, whatever the template.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"{% for m in messages %}{{ m.role }}{% if loop.last %}{{ m['content']|trim }}{% endif %}{% endfor %}",
		"{% macro m(a, b=1) %}{{ a ~ b }}{% endmacro %}{% call(x) m(2) %}{{ x }}{% endcall %}{{ m(1, b=2) }}",
		"{%- set ns = namespace(x=0) -%}{% set ns.x = ns.x + 1 %}{{ ns.x ** 2 // 3 % 4 }}" +
			"{{ messages[::-1]|tojson(indent=2) }}",
		"{{ '%s %5.2f' % ('a', 1.5) }}{{ '{0:>{1}}'.format(1, 5) }}{% filter upper %}x{% endfilter %}{% raw %}{{{% endraw %}",
		"{% with a = 1 %}{% set b %}{{ a }}{% endset %}{% endwith %}{{ messages|sort(attribute='role')|list|string }}",
	} {
		f.Add(s)
	}
	vars, err := DecodeVars([]byte(`{"messages": [{"role": "user", "content": "Hi"}, ` +
		`{"role": "assistant", "content": null}], "tools": null}`))
	if err != nil {
		f.Fatal(err)
	}
	o := Options{Limits: Limits{Steps: 200_000, Memory: 8 << 20, Output: 1 << 20, Depth: 200}}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Compile(context.Background(), source)
		if err != nil {
			return
		}
		out, err := tmpl.Render(context.Background(), vars, o)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("unexpected error: %v", err)
		}
		if len(out) > 1<<20 {
			t.Errorf("output of %d bytes", len(out))
		}
	})
}

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(`{"a": [1, 2.5e3, "\u00e9\ud83d\ude00", null, true], "b": {}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := DecodeJSON(b)
		if err != nil && !errors.Is(err, ErrInput) {
			t.Errorf("%v", err)
		}
		if std := json.Valid(b); std && err != nil && !strings.Contains(err.Error(), "deep") &&
			!strings.Contains(err.Error(), "digits") && !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%q: %v, %v, but it is valid JSON", b, v, err)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	tmpl, err := Compile(context.Background(),
		"{% for m in messages %}<|{{ m.role }}|>{{ m['content'] | trim }}{% if not loop.last %}\n{% endif %}{% endfor %}")
	if err != nil {
		b.Fatal(err)
	}
	vars, err := DecodeVars([]byte(`{"messages": [` +
		strings.TrimSuffix(strings.Repeat(`{"role": "user", "content": " some words "},`, 100), ",") + `]}`))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := tmpl.Render(context.Background(), vars, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
