package servers

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/internal/limits"
)

// TestKeyFile checks that a client's key is the first one of the file, and that an invalid key is one error that names
// the file.
func TestKeyFile(t *testing.T) {
	t.Setenv(EnvAPIKey, "of-the-environment")
	longest := strings.Repeat("k", limits.APIKey)
	dir := t.TempDir()
	for name, test := range map[string]struct{ text, key, fault string }{
		"plain":         {"key\n", "key", ""},
		"without end":   {"key", "key", ""},
		"windows":       {"key\r\n", "key", ""},
		"spaces around": {"  key \t\nnot this\n", "key", ""},
		"longest":       {longest + "\r\nmore", longest, ""},
		"no line break": {longest, longest, ""},
		"of the server": {"# two\nalice key requests=4\nbob other\n", "key", ""},
		"empty line":    {"\nkey\n", "key", ""},
		"too long":      {longest + "k\n", "", "the key is longer than 4096 bytes"},
		"endless":       {strings.Repeat("k", 1<<20), "", "the line is longer than 4352 bytes"},
		"long spaces":   {strings.Repeat(" ", 1<<20), "", "the line is longer than 4352 bytes"},
		"empty":         {"", "", "has no key"},
		"three words":   {"a key here\n", "", "the line must be [NAME] KEY"},
		"an escape":     {"a\x1b[2Jkey\n", "", "contains control characters"},
		"not ASCII":     {"schlüssel\n", "", "non-ASCII characters"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		key, err := KeyFlag{path}.Read(&cli.App{Err: terminal.Notes(&errs)})
		if key != test.key || (err != nil) != (test.fault != "") || errs.Len() > 0 {
			t.Errorf("%s: %q, %v; notes %q", name, key, err, errs.String())
		}
		if err != nil && (!strings.Contains(err.Error(), test.fault) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: error %v, want %s", name, err, test.fault)
		}
	}
	for path, want := range map[string]string{filepath.Join(dir, "none"): "none", dir: dir} {
		if _, err := (KeyFlag{path}).Read(&cli.App{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", path, err)
		}
	}
	if key, err := (KeyFlag{}).Read(&cli.App{}); key != "of-the-environment" || err != nil {
		t.Errorf("without the flag: %q, %v", key, err)
	}
	if runtime.GOOS == "windows" {
		return // Windows has no such modes
	}
	path := filepath.Join(dir, "plain")
	for mode, noted := range map[os.FileMode]bool{0o400: false, 0o640: true, 0o604: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		key, err := KeyFlag{path}.Read(&cli.App{Err: terminal.Notes(&errs)})
		if key != "key" || err != nil || strings.Contains(errs.String(), "other users may read "+path) != noted {
			t.Errorf("mode %v: %q, %v, %q", mode, key, err, errs.String())
		}
	}
}
