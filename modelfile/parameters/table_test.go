package parameters

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table in docs/run.md")

const (
	page  = "../../docs/run.md"
	begin = "<!-- parameters: written by `go test ./modelfile/parameters -update` -->\n"
	end   = "<!-- end of parameters -->\n"
)

func TestPageHasTheTable(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	want := before + begin + parameterRows() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(b) != want {
		t.Errorf("%s differs from the table: run `go test ./modelfile/parameters -update`", page)
	}
}

// parameterRows has a row for each parameter of requests.
func parameterRows() string {
	var rows strings.Builder
	rows.WriteString("| Parameter | Effect | Values | Default | `ingot run` | OpenAI | Anthropic |\n")
	rows.WriteString("|---|---|---|---|---|---|---|\n")
	code := func(names ...string) string {
		if len(names) == 0 || names[0] == "" {
			return ""
		}
		return "`" + strings.Join(names, "`, `") + "`"
	}
	for _, p := range OfRequests() {
		flag, standard := p.Flag.Name, ""
		if flag != "" {
			flag = "--" + flag
		}
		if p.Default != nil {
			standard = fmt.Sprint(p.Default)
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s | %s | %s |\n", code(p.Name), p.Help, p.Values(), standard, code(flag),
			code(p.OpenAI...), code(p.Anthropic))
	}
	return rows.String()
}

// Flags and names of an API belong to one parameter each, and only requests have them.
func TestNamesAreDistinct(t *testing.T) {
	owners := map[string]string{}
	for _, p := range append(All(), extensions...) {
		if !p.Request && (p.Default != nil || p.OpenAI != nil || p.Anthropic != "" || p.Flag.Name != "") {
			t.Errorf("%s: requests do not have it, but it has a default or a name in an API", p.Name)
		}
		names := []string{"--" + p.Flag.Name}
		for _, a := range []API{Ollama, OpenAI, Anthropic} {
			for _, n := range p.Names(a) {
				names = append(names, fmt.Sprint(a, n))
			}
		}
		for _, n := range names {
			if owner, taken := owners[n]; taken && n != "--" {
				t.Errorf("%s and %s are both named %s", owner, p.Name, n)
			}
			owners[n] = p.Name
		}
	}
}

func TestParameterTable(t *testing.T) {
	ps := All()
	if !slices.IsSortedFunc(ps, func(a, b Info) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the table is not sorted")
	}
	for _, p := range ps {
		if (p.Help == "") != p.Deprecated {
			t.Errorf("%s: a parameter has a help line, a deprecated one has none", p.Name)
		}
		if (p.Type == Int || p.Type == Float) && p.Min >= p.Max {
			t.Errorf("%s: range from %v to %v", p.Name, p.Min, p.Max)
		}
	}
}
