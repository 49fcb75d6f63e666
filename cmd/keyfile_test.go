package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/servers"
)

// TestKeyFileFlag checks that every command with a server's key reads the file and sends the key.
func TestKeyFileFlag(t *testing.T) {
	h := withImpostor(t, nil)
	t.Setenv(servers.EnvAPIKey, "of-the-environment")
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("of-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ps"}, {"stop", "talk"}} {
		before := len(h.String())
		args = append(args, "--api-key-file", path, "--host", os.Getenv("INGOT_HOST"))
		if code, _, errs := runMain(args, ""); code != 0 {
			t.Errorf("%v: code %d, %s", args, code, errs)
		}
		if got := h.String()[before:]; !strings.Contains(got, "Bearer of-the-file]") {
			t.Errorf("%v: the server received %s", args, got)
		}
	}
	for _, args := range [][]string{
		{"ps"}, {"stop", "talk"}, {"run", "talk", "Well?"}, {"serve", "--host", "127.0.0.1:0"},
	} {
		code, _, errs := runMain(append(args, "--api-key-file", path+"-none"), "")
		if code != 1 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "--api-key-file: open "+path+"-none") {
			t.Errorf("%v: code %d, %s", args, code, errs)
		}
	}
	withArgs := []string{"launch", "run", "--model", "talk", "--yes", "--api-key-file", path + "-none", "--", "Well?"}
	if code, _, errs := runMain(withArgs, ""); code != 1 || !strings.Contains(errs, "--api-key-file: open "+path+"-none") {
		t.Errorf("%v: code %d, %s", withArgs, code, errs)
	}
	code, _, errs := runMain([]string{"serve", "--api-key", "k", "--api-key-file", path}, "")
	if code != cli.ExitUsage || !strings.Contains(errs, "cannot be combined") {
		t.Errorf("code %d, %s", code, errs)
	}
}
