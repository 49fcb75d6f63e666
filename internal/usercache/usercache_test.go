package usercache

import (
	"path/filepath"
	"testing"
)

func TestDir(t *testing.T) {
	own, user := t.TempDir(), t.TempDir()
	t.Setenv("INGOT_CACHE", own)
	if got := Dir("x"); got != filepath.Join(own, "x") {
		t.Errorf("with INGOT_CACHE: %s", got)
	}
	t.Setenv("INGOT_CACHE", "")
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, user)
	}
	if got, err := filepath.Rel(user, Dir("x")); err != nil || filepath.Base(filepath.Dir(got)) != "ingot" {
		t.Errorf("in the user's cache folder: %s, %v", got, err)
	}
}
