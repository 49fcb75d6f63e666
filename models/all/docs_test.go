package all

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
)

var update = flag.Bool("update", false, "rewrite the table in docs/models.md")

const (
	begin = "<!-- model types: written by `go test ./models/all -run Page -update` -->\n"
	end   = "<!-- end of model types -->\n"
)

// The table of model types in docs/models.md is that of the registry.
func TestPageHasTheTable(t *testing.T) {
	page := filepath.Join(root, "docs", "models.md")
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	var rows strings.Builder
	rows.WriteString("| Model types | Variants | Precision rules | Draft | Vision | Tested against |\n")
	rows.WriteString("|---|---|---|---|---|---|\n")
	for _, a := range arch.All() {
		if a.Docs.Variants == "" {
			t.Errorf("arch/%s.go: Docs.Variants is empty", a.ModelType)
		}
		draft := cmp.Or(a.Docs.Draft, "no")
		if a.DraftOnly {
			draft = "is one"
		}
		types := append([]string{a.ModelType}, a.Aliases...)
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s | %s | %s |\n", strings.Join(types, "`, `"), a.Docs.Variants,
			cmp.Or(a.Docs.Rules, "generic"), draft, cmp.Or(a.Docs.Vision, "no"), reference(a))
	}
	want := before + begin + rows.String() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(b) != want {
		t.Errorf("%s differs from the registry: run `go test ./models/all -run Page -update`", page)
	}
}

// reference links the code that a type is tested against.
func reference(a arch.Arch) string {
	const code = "https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/models/%[1]s/modeling_%[1]s.py"
	return cmp.Or(a.Docs.Code, "[transformers]("+fmt.Sprintf(code, a.ModelType)+")") + a.Docs.Reference
}
