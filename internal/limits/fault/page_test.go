package fault_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/fault"
)

var update = flag.Bool("update", false, "rewrite the table in docs/errors.md")

const (
	begin = "<!-- errors: written by `go test ./internal/limits/fault -update` -->\n"
	end   = "<!-- end of errors -->\n"
)

// The table in docs/errors.md is that of the program.
func TestPageHasTheTable(t *testing.T) {
	page := filepath.Join(root, "docs", "errors.md")
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	want := before + begin + table() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(b) {
		t.Errorf("the table in %s is stale: go test ./internal/limits/fault -update", page)
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("| Error | Meaning | Exit | HTTP | Pull, push | Code | Wire |\n|---|---|---|---|---|---|---|\n")
	for _, k := range fault.Kinds() {
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s | %s | %s | %s |\n", k.Name, k.Means, cmp.Or(k.Exit, fault.ExitFailed),
			number(k.Status), number(k.Transfer), quoted(string(k.Code)), quoted(k.Wire))
	}
	return b.String()
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}
