package cmd_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd"
	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
)

// TestSignAsks checks that sign on a terminal prints the registry's digest, and signs only on yes.
func TestSignAsks(t *testing.T) {
	name := newTestRegistry(t.Cleanup).addr + "/team/model:v1"
	keys := filepath.Join(t.TempDir(), "ours")
	if err := writeKeys("ed25519", keys); err != nil {
		t.Fatal(err)
	}

	run := func(home string, args ...string) string {
		t.Helper()
		t.Setenv("INGOT_HOME", filepath.Join(home, "store"))
		var out, errs bytes.Buffer
		if code := cmd.Main(args, nil, &out, &errs); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
		}
		return strings.TrimSpace(out.String())
	}
	publisher, signer := t.TempDir(), t.TempDir()
	run(publisher, "create", name, filepath.Join("..", "testdata", "models", "llama-tied"))
	d := run(publisher, "push", name)

	for _, test := range []struct {
		reply  string
		signed bool
	}{{"\n", false}, {"no\n", false}, {"y\n", true}} {
		t.Setenv("INGOT_HOME", filepath.Join(signer, "store"))
		control, tty := terminaltest.PTY(t, 200, 24)
		if _, err := control.WriteString(test.reply); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if code := cmd.Main([]string{"sign", name, "--key", keys + ".key", "--push"}, tty, &out, tty); code != 0 {
			t.Errorf("answer %q: exit code %d", test.reply, code)
		}
		tty.Close()
		shown, _ := io.ReadAll(control) // ends with EIO: the other end is closed
		if !strings.Contains(string(shown), name+" is not in the store; in the registry it is "+d+". Sign that? [y/N]") {
			t.Errorf("answer %q: the question is %q, want the digest %s", test.reply, shown, d)
		}
		if signed := strings.HasPrefix(out.String(), "sha256:"); signed != test.signed {
			t.Errorf("answer %q: printed %q", test.reply, out.String())
		}
		found := run(signer, "discover", name, "--remote")
		if signed := strings.Contains(found, "sigstore"); signed != test.signed {
			t.Errorf("answer %q: the registry has %s", test.reply, found)
		}
	}
}
