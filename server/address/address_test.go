package address

import "testing"

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text, listen, url string
		loopback, warns   bool
	}{
		{"", "127.0.0.1:11434", "http://127.0.0.1:11434", true, false},
		{"127.0.0.1", "127.0.0.1:11434", "http://127.0.0.1:11434", true, false},
		{"127.0.0.1:1234", "127.0.0.1:1234", "http://127.0.0.1:1234", true, false},
		{"0.0.0.0", "0.0.0.0:11434", "http://127.0.0.1:11434", false, false},
		{"0.0.0.0:1234", "0.0.0.0:1234", "http://127.0.0.1:1234", false, false},
		{"[::]", "[::]:11434", "http://[::1]:11434", false, false},
		{"::", "[::]:11434", "http://[::1]:11434", false, false},
		{"[::]:1234", "[::]:1234", "http://[::1]:1234", false, false},
		{"[::1]", "[::1]:11434", "http://[::1]:11434", true, false},
		{"[::1]:1234", "[::1]:1234", "http://[::1]:1234", true, false},
		{"192.168.7.20", "192.168.7.20:11434", "http://192.168.7.20:11434", false, false},
		{"192.168.7.20:1234", "192.168.7.20:1234", "http://192.168.7.20:1234", false, false},
		{"example.com", "example.com:11434", "http://example.com:11434", false, false},
		{"example.com:1234", "example.com:1234", "http://example.com:1234", false, false},
		{"localhost", "localhost:11434", "http://localhost:11434", true, false},
		{":1234", "127.0.0.1:1234", "http://127.0.0.1:1234", true, false},
		{"http://example.com", "example.com:80", "http://example.com:80", false, false},
		{"https://example.com", "example.com:443", "https://example.com:443", false, false},
		{"https://0.0.0.0:4321", "0.0.0.0:4321", "https://127.0.0.1:4321", false, false},
		{"https://example.com/a/b/", "example.com:443", "https://example.com:443/a/b", false, false},
		{` "example.com:0" `, "example.com:0", "http://example.com:0", false, false},
		{"example.com:66000", "example.com:11434", "http://example.com:11434", false, true},
		{"http://example.com:-1", "example.com:80", "http://example.com:80", false, true},
		{"127.0.0.1:port", "127.0.0.1:11434", "http://127.0.0.1:11434", true, true},
		{"ftp://example.com", "example.com:11434", "http://example.com:11434", false, true},
	} {
		a, warning := Parse(c.text)
		if a.Listen() != c.listen || a.URL() != c.url || a.Loopback() != c.loopback || (warning != "") != c.warns {
			t.Errorf("%q: %s, %s, loopback %v, warning %q; want %s, %s, %v, %v", c.text,
				a.Listen(), a.URL(), a.Loopback(), warning, c.listen, c.url, c.loopback, c.warns)
		}
	}
}

func TestFromEnv(t *testing.T) {
	t.Setenv(Env, "example.com")
	if a, _ := FromEnv(""); a.Host != "example.com" {
		t.Errorf("the environment's host is %q", a.Host)
	}
	if a, _ := FromEnv("other.example"); a.Host != "other.example" {
		t.Errorf("the flag's host is %q", a.Host)
	}
}
