package disk

import (
	"os"
	"testing"
)

// A closed file cannot be synced: an error shows that Sync has tried.
func TestNoSync(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, c := range []struct {
		value string
		syncs bool
	}{{"", true}, {"1", false}} {
		t.Setenv(EnvNoSync, c.value)
		if err := Sync(f); (err != nil) != c.syncs {
			t.Errorf("%s=%q: %v", EnvNoSync, c.value, err)
		}
	}
}
