package modelfile

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the table in docs/run.md")

const (
	page  = "../docs/run.md"
	begin = "<!-- parameters: written by `go test ./modelfile -update` -->\n"
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
		t.Errorf("%s differs from the table: run `go test ./modelfile -update`", page)
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
	for _, p := range RequestParameters() {
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
	for _, p := range append(Parameters(), extensions...) {
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

func TestGiven(t *testing.T) {
	type nested struct {
		Seed *int64 `json:"seed"`
	}
	from := struct {
		nested
		Temperature *float64 `json:"temperature"`
		TopK        *int     `json:"top_k"`
		Repeat      *float64 `json:"repetition_penalty"`
		Stop        []string `json:"stop"`
		IgnoreEOS   bool     `json:"ignore_eos"`
		Most        *int     `json:"max_output_tokens"`
		Other       *int     `json:"num_gpu"`
	}{
		nested: nested{new(int64(3))}, Temperature: new(0.0), Repeat: new(1.5), Stop: []string{}, IgnoreEOS: true,
		Most: new(9), Other: new(1),
	}
	var got []string
	for p, v := range Given(OpenAI, &from) {
		got = append(got, fmt.Sprintf("%s %T", p.Name, v))
	}
	want := []string{
		"num_predict *int", "repeat_penalty *float64", "seed *int64", "stop []string", "temperature *float64",
		"ignore_eos bool",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = nil
	for p := range Given(Anthropic, from) {
		got = append(got, p.Name)
	}
	if d := cmp.Diff([]string{"temperature"}, got); d != "" {
		t.Error(d)
	}
}

func TestSetMember(t *testing.T) {
	type texts []string
	var to struct {
		Stop texts `json:"stop"`
		TopK *int  `json:"top_k"`
	}
	if !SetMember(&to, "stop", []string{"a"}) || to.Stop[0] != "a" || !SetMember(&to, "top_k", new(4)) || *to.TopK != 4 {
		t.Errorf("%+v", to)
	}
	if SetMember(&to, "top_p", 0.5) || SetMember(&to, "top_k", "x") {
		t.Errorf("a member that does not exist, or has another type, was set: %+v", to)
	}
}
