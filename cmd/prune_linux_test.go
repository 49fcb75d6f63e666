package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
	"github.com/ingotml/ingot/manifest/store"
)

// TestPruneAsks checks that prune on a terminal lists what it would delete, and deletes only on yes.
func TestPruneAsks(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	t.Setenv("INGOT_HOME", root)
	store, err := store.Open("")
	if err != nil {
		t.Fatal(err)
	}
	d, _, err := store.PutBytes(t.Context(), []byte("nobody needs this"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reply string
		gone  bool
	}{{"\n", false}, {"no\n", false}, {"Y\n", true}, {"", true}} {
		control, tty := terminaltest.PTY(t, 80, 24)
		if _, err := control.WriteString(test.reply); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if code := Main([]string{"prune"}, tty, &out, tty); code != 0 {
			t.Errorf("answer %q: exit code %d", test.reply, code)
		}
		if _, err := os.Stat(store.BlobPath(d)); (err != nil) != test.gone {
			t.Errorf("answer %q: the blob is deleted: %v", test.reply, err != nil)
		}
		// in the last case there is nothing to delete
		if listed := strings.Contains(out.String(), string(d)); listed != (test.reply != "") {
			t.Errorf("answer %q: printed %q", test.reply, out.String())
		}
	}
}
