package jinja

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

// FuzzJinjaLimits checks that with small limits no template hangs, panics, or allocates more than a multiple of its
// memory limit.
func FuzzJinjaLimits(f *testing.F) {
	for _, s := range []string{
		"{% for m in messages %}{{ m.role }}{{ m['content']|trim }}{% endfor %}",
		"{% set ns = namespace(s='x', l=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}" +
			"{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson }}",
		"{% macro m(a, b=[]) %}{% set c %}{{ a * 100 }}{{ m(a ~ a) }}{% endset %}{{ c }}{% endmacro %}{{ m('x') }}",
		"{% set ns = namespace(l=['a']) %}{% for i in range(1000) %}{% set ns.l = ns.l|map('upper')|list + ns.l %}" +
			"{% endfor %}{{ ns.l|join }}",
		"{{ 'a' * 9999 }}{{ '%99999d' % 1 }}{{ 'x'.center(99999) }}{{ 9 ** 999 }}{{ (1, (2, 3)) in {(1, 2): 3} }}",
		"{% for x in [1, [2, [3]]] recursive %}{% if x is iterable %}{{ loop(x) }}{% else %}{{ x }}{% endif %}{% endfor %}",
		"{% macro b() %}{% if 0 %}{% elif 1 %}{% set q = 1 %}{% endif %}{% endmacro %}{% filter upper %}{{ b() }}" +
			"{% endfilter %}",
		"{{ messages|sort(attribute='role')|list|string }}{{ messages|map(attribute='role')|list }}" +
			"{{ 'a,b'.split(',')|unique|sort|string }}",
		"{{ " + strings.Repeat("(", 100) + "1" + strings.Repeat("+1)", 100) + " }}",
	} {
		f.Add(s)
	}
	vars, err := DecodeVars([]byte(`{"messages": [{"role": "user", "content": "Hi"}, ` +
		`{"role": "assistant", "content": null}], "tools": null}`))
	if err != nil {
		f.Fatal(err)
	}
	o := Options{Limits: Limits{Steps: 200_000, Memory: 1 << 20, Output: 64 << 10}}
	f.Fuzz(func(t *testing.T, source string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		tmpl, err := Compile(ctx, source)
		if err != nil {
			if !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrLimit) {
				t.Errorf("unexpected error: %v", err)
			}
			return
		}
		if tmpl.levels > limits.TemplateDepth {
			t.Errorf("%d levels", tmpl.levels)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := tmpl.Render(ctx, vars, o)
		runtime.ReadMemStats(&after)
		if err != nil && !errors.Is(err, ErrRender) && !errors.Is(err, ErrLimit) {
			t.Errorf("unexpected error: %v", err)
		}
		if int64(len(out)) > o.Limits.Output {
			t.Errorf("%d bytes of output", len(out))
		}
		// TotalAlloc includes garbage and uncounted allocations: a few bytes per step.
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 256<<20 {
			t.Errorf("%d bytes allocated", allocated)
		}
		if ctx.Err() != nil {
			t.Error("timeout")
		}
	})
}
