package modeltest

import (
	"os"
	"strings"
	"testing"
)

// Every checks each checkpoint of testdata whose name starts with one of the prefixes: all with [Checkpoint.Paths], the
// first also with [Checkpoint.Formats].
func Every(t *testing.T, limits Limits, prefixes ...string) {
	t.Helper()
	entries, err := os.ReadDir(Dir(""))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range entries {
		for _, prefix := range prefixes {
			if !strings.HasPrefix(e.Name(), prefix) {
				continue
			}
			first := !found
			found = true
			t.Run(e.Name(), func(t *testing.T) {
				c := Load(t, e.Name())
				c.Limits = limits
				c.Paths(t)
				if first {
					t.Run("formats", c.Formats)
				}
			})
		}
	}
	if !found {
		t.Errorf("%s has no checkpoint %v*", Dir(""), prefixes)
	}
}
