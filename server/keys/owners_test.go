package keys

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of keys that changes keeps the owner of each key: of a name, whatever its key is, and of a key without a name,
// wherever it stands.
func TestOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	var list *Keys
	owner := func(text, key string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if list, err = Open(path, t.Logf); err != nil {
			t.Fatal(err)
		}
		return list.Find(key).Owner()
	}
	if a, b := owner("alice k1\nbob k2\n", "k1"), owner("bob k2\nalice k9\n", "k9"); a != "alice" || b != a {
		t.Errorf("the owner of a name was %q and is %q", a, b)
	}
	first, moved := owner("k1\nk2\n", "k2"), owner("k2\nk3\n", "k2")
	if first == "" || first != moved || first == owner("k2\nk3\n", "k3") || first == owner("k1\nk2\n", "k1") {
		t.Errorf("a key without a name had the owner %q and has %q", first, moved)
	}
	if strings.Contains(first, "k2") || first == owner("default k2\n", "k2") {
		t.Errorf("owner %q", first)
	}
	if got := list.Owned("default").Owner(); got != "default" {
		t.Errorf("the key of an owner: %q", got)
	}
	if one := fmt.Sprint(One("k1").Find("k1").Owner(), One("k2").Find("k2").Owner()); one != "defaultdefault" {
		t.Errorf("the owner of the only key: %s", one)
	}
}

// If the file says which keys may read what all have used, others may not.
func TestSees(t *testing.T) {
	for text, want := range map[string][2]bool{
		"a ka\nb kb\n": {true, true}, "a ka metrics=1\nb kb": {true, false}, "ka\nkb requests=2 metrics=1": {false, true},
		"ka metrics=1\nkb metrics=1": {true, true},
	} {
		list, err := parse("FILE", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		k := &Keys{list: func() []entry { return list }}
		if got := [2]bool{k.Sees(k.Find("ka")), k.Sees(k.Find("kb"))}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if k := One("k"); !k.Sees(k.Find("k")) || !(*Keys)(nil).Sees(nil) {
		t.Error("the only key, or nobody's, may not")
	}
}
