package settings

import "testing"

func TestCheckRequires(t *testing.T) {
	for _, c := range []struct {
		requires, version string
		ok                bool
	}{
		{"", "1.0.0", true},
		{"1.2", "1.2.0", true},
		{"1.2.1", "1.2.0", false},
		{"v2", "1.9.9", false},
		{"2.0.0", "dev", true}, // a build without a version only warns
	} {
		if err := (Record{Requires: c.requires}).CheckRequires("m", c.version); (err == nil) != c.ok {
			t.Errorf("requires %q, version %q: %v", c.requires, c.version, err)
		}
	}
}
