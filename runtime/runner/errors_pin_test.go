package runner

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var updateErrors = flag.Bool("update-errors", false, "rewrite testdata/errors.golden")

// The wire's name of every error of the module, and of every pair of those that have one, is pinned.
func TestKindsArePinned(t *testing.T) {
	var b strings.Builder
	var known []int
	for i, s := range sentinels {
		kind := wireError(fmt.Errorf("do it: %w", s.err)).Kind
		if kind != "" {
			known = append(known, i)
		}
		fmt.Fprintf(&b, "%s: %q\n", s.name, kind)
	}
	for i, x := range known {
		for _, y := range known[i+1:] {
			x, y := sentinels[x], sentinels[y]
			fmt.Fprintf(&b, "%s, %s: %q\n", x.name, y.name, wireError(fmt.Errorf("%w: %w", x.err, y.err)).Kind)
		}
	}
	got := b.String()
	const file = "testdata/errors.golden"
	if *updateErrors {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the names on the wire have changed:\n%s", got)
	}
}
