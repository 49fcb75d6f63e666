package modeltest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// Every checks each checkpoint of testdata whose name starts with one of the prefixes. The variants that limits.Full
// names take [Checkpoint.Paths], and the first of them also [Checkpoint.Formats]. Without names these are the first
// two. The others take [Checkpoint.Brief], or, in the long form, all paths.
func Every(t *testing.T, limits Limits, prefixes ...string) {
	t.Helper()
	entries, err := os.ReadDir(Dir(""))
	if err != nil {
		t.Fatal(err)
	}
	var names, full []string
	for _, e := range entries {
		for _, prefix := range prefixes {
			variant, ok := strings.CutPrefix(e.Name(), prefix)
			if !ok {
				continue
			}
			names = append(names, e.Name())
			if slices.Contains(limits.Full, variant) {
				full = append(full, e.Name())
			}
		}
	}
	if len(names) == 0 || len(full) != len(limits.Full) {
		t.Fatalf("%s has no checkpoint %v*, or lacks one of %v", Dir(""), prefixes, limits.Full)
	}
	if len(full) == 0 {
		full = names[:min(2, len(names))]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			c := Load(t, name)
			c.Limits = limits
			switch {
			case name == full[0]:
				c.Paths(t)
				t.Run("formats", c.Formats)
			case runtest.Long() || slices.Contains(full, name):
				c.Paths(t)
				t.Run("4 bits and floats of 8", c.checkModes)
			default:
				c.Brief(t)
			}
		})
	}
}
