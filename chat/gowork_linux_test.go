package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits/runtest"
)

// goData returns variables of about n bytes or items.
func goData(n int) map[string]any {
	m, nested, list := map[string]any{}, map[string]any{}, []any{}
	for i := range n / 32 {
		m[fmt.Sprintf("key %d", i)] = i
		list = append(list, map[string]any{"type": "string"})
	}
	prefix := strings.Repeat("k", n/64)
	for i := range 64 {
		nested[fmt.Sprint(prefix, i)] = map[string]any{"type": []any{"string"}}
	}
	text := func() string { return strings.Repeat("a<\"é", n/5) }
	return map[string]any{"A": text(), "B": text(), "M": m, "N": nested, "L": list, "Format": strings.Repeat("%%", n/2),
		"Verbs": strings.Repeat("%s", n/2), "Schema": map[string]any{"anyOf": list}, "Object": goObject(m),
		"Tool": goTool{text: text()}, "One": 1}
}

// TestGoTemplateGrowth: no function of Go templates, and no range, takes longer than the steps that it counts.
func TestGoTemplateGrowth(t *testing.T) {
	const perStep, fixed = 2 * time.Microsecond, 20 * time.Millisecond
	var actions []string
	values := []string{"$.A", "$.M", "$.N", "$.L", "$.Format", "$.Object", "$.Tool", "$.Schema", "$.One", "$.None"}
	for _, f := range []string{"eq", "ne", "lt", "le", "gt", "ge", "index", "and", "or", "print", "println",
		`printf "%s%q"`, "printf $.Format", "printf $.Verbs", `printf "%v"`, "html", "js", "urlquery"} {
		for _, v := range values {
			actions = append(actions, fmt.Sprintf("{{if %s %s $.B}}{{end}}", f, v),
				fmt.Sprintf("{{if $.B | %s %s}}{{end}}", f, v))
		}
	}
	for _, f := range []string{"len", "not", "json", "toTypeScriptType", "print", "html", "js", "urlquery", "slice",
		"index", `printf "%v"`, `printf "%x"`} {
		for _, v := range values {
			actions = append(actions, fmt.Sprintf("{{if %s %s}}{{end}}", f, v),
				fmt.Sprintf("{{if %s | %s}}{{end}}", v, f))
		}
	}
	for _, v := range values {
		actions = append(actions, fmt.Sprintf("{{range %s}}{{break}}{{end}}", v), fmt.Sprintf("{{range %s}}{{end}}", v),
			fmt.Sprintf("{{with %s}}{{end}}", v), fmt.Sprintf("{{%s}}", v), fmt.Sprintf("{{$x := %s}}{{$x}}", v))
	}
	var some []string
	for i := 0; i < len(actions); i += runtest.Pick(7, 1) {
		some = append(some, actions[i])
	}
	charges := func(n int) runtest.Charges {
		all := runtest.Charges{}
		data := goData(n)
		for _, action := range some {
			tmpl, err := parseGo(t.Context(), "{{range 20}}"+action+"{{end}}{{.Messages}}")
			if err != nil {
				t.Fatalf("%s: %v", action, err)
			}
			all[action] = func() int64 {
				run, err := tmpl.(*goTemplate).start(t.Context(), jinja.NewDict(), jinja.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer run.meter.Done()
				_ = run.execute(data, false) // what does not fit together is an error, whose cost counts too
				return run.steps
			}
		}
		return all
	}
	runtest.CheckCharges(t, charges(10_000), charges(100_000), perStep, fixed)
}
