package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/internal/limits"
)

// TestKeyFile checks that a client's key is the first one of the file, and that an invalid key is one error that names
// the file.
func TestKeyFile(t *testing.T) {
	t.Setenv(envAPIKey, "of-the-environment")
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
		key, err := keyFlag{path}.read(&app{err: terminal.Notes(&errs)})
		if key != test.key || (err != nil) != (test.fault != "") || errs.Len() > 0 {
			t.Errorf("%s: %q, %v; notes %q", name, key, err, errs.String())
		}
		if err != nil && (!strings.Contains(err.Error(), test.fault) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: error %v, want %s", name, err, test.fault)
		}
	}
	for path, want := range map[string]string{filepath.Join(dir, "none"): "none", dir: dir} {
		if _, err := (keyFlag{path}).read(&app{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", path, err)
		}
	}
	if key, err := (keyFlag{}).read(&app{}); key != "of-the-environment" || err != nil {
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
		key, err := keyFlag{path}.read(&app{err: terminal.Notes(&errs)})
		if key != "key" || err != nil || strings.Contains(errs.String(), "other users may read "+path) != noted {
			t.Errorf("mode %v: %q, %v, %q", mode, key, err, errs.String())
		}
	}
}

// TestKeyFileFlag checks that every command with a server's key reads the file and sends the key.
func TestKeyFileFlag(t *testing.T) {
	h := withImpostor(t, nil)
	t.Setenv(envAPIKey, "of-the-environment")
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
	if code != exitUsage || !strings.Contains(errs, "cannot be combined") {
		t.Errorf("code %d, %s", code, errs)
	}
}
