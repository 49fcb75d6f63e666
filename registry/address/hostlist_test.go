package address

import "testing"

func TestHosts(t *testing.T) {
	l, err := ParseHosts(" Registry.example.com, 10.0.0.5:5000,localhost,,[::1]")
	if err != nil || len(l) != 4 {
		t.Fatal(l, err)
	}
	for host, want := range map[string]bool{
		"registry.example.com": true, "REGISTRY.example.com:5000": true, "10.0.0.5:5000": true, "10.0.0.5": false,
		"10.0.0.5:5001":  false,
		"localhost:5000": true, "[::1]:5000": true, "[::1]": true, "example.com": false, "a.registry.example.com": false,
		"": false,
	} {
		if got := l.Has(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
	for _, bad := range []string{"https://registry.example.com", "registry.example.com/team", "word", "a b.com", "*"} {
		if l, err := ParseHosts(bad); err == nil {
			t.Errorf("%q is %q", bad, l)
		}
	}
}
