package cmd

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/storetest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// A listing reads the index and each image as often for many names as for few: what it reads for each name again makes
// it quadratic in the number of names.
func TestListingsReadOnce(t *testing.T) {
	for _, args := range [][]string{
		{"ls"}, {"ls", "--json"}, {"ls", "-q"}, {"ls", "copies/*"}, {"ls", "--format", "{{.Name}}"}, {"tags", "copies/of"},
		{"__complete", "run", ""}, {"__complete", "rm", "copies/of:v1", ""}, {"df"}, {"fsck"}, {"prune", "--dry-run"},
		{"prune", "--yes"}, {"rm", "copies/of:v0", "copies/of:v1"}, {"rm", "many"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			few, many := listingReads(t, args, 2), listingReads(t, args, 40)
			if few.Index == 0 || many != few {
				t.Errorf("of 3 names: %+v; of 41: %+v", few, many)
			}
		})
	}
}

// listingReads returns what a command reads of a store that has an image with some more names.
func listingReads(t *testing.T, args []string, copies int) storetest.Reads {
	t.Helper()
	root := filepath.Join(t.TempDir(), "store")
	t.Setenv("INGOT_HOME", root)
	s, err := store.Open("")
	if err != nil {
		t.Fatal(err)
	}
	storetest.PutModel(t, s, "demo", "weights", "more weights")
	storetest.Copies(t, s, "demo", copies)
	if args[len(args)-1] == "many" { // all of the copies
		args = args[: len(args)-1 : len(args)-1]
		args = append(args, storetest.Names(t, s)[:copies]...)
	}
	return storetest.CountReads(t, root, func() {
		var out, errs bytes.Buffer
		if code := Main(args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, errs.String())
		}
	})
}

// What ls leaves out is noted, also if it prints names only.
func TestListNotesSkipped(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	t.Setenv("INGOT_HOME", root)
	s, err := store.Open("")
	if err != nil {
		t.Fatal(err)
	}
	storetest.PutModel(t, s, "demo", "weights")
	storetest.PutEntry(t, s, "../../x", ocispec.MediaTypeImageManifest, "{}")
	for _, args := range [][]string{{"ls"}, {"ls", "-q"}, {"ls", "--json"}} {
		var out, errs bytes.Buffer
		if code := Main(args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Errorf("%v: exit code %d", args, code)
		}
		if !strings.Contains(errs.String(), "1 entries") || !strings.Contains(errs.String(), "ingot fsck") ||
			!strings.Contains(out.String(), "demo") {
			t.Errorf("%v: %s%s", args, out.String(), errs.String())
		}
	}
}
