package manifest

import (
	"errors"
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	at := "@" + string(someDigest)
	tests := []struct {
		in   string
		want Name
		out  string // canonical
	}{
		{"demo", Name{Path: "demo", Tag: "latest"}, "demo:latest"},
		{"demo:8b", Name{Path: "demo", Tag: "8b"}, "demo:8b"},
		{"llama3.2:1b", Name{Path: "llama3.2", Tag: "1b"}, "llama3.2:1b"},
		{"Qwen/Qwen3-0.6B", Name{Path: "Qwen/Qwen3-0.6B", Tag: "latest"}, "Qwen/Qwen3-0.6B:latest"},
		{"a/b/c/d/e:V_1.x-y", Name{Path: "a/b/c/d/e", Tag: "V_1.x-y"}, "a/b/c/d/e:V_1.x-y"},
		{"a__b/c--d", Name{Path: "a__b/c--d", Tag: "latest"}, "a__b/c--d:latest"},
		{"ghcr.io/me/models/demo", Name{Host: "ghcr.io", Path: "me/models/demo", Tag: "latest"},
			"ghcr.io/me/models/demo:latest"},
		{"GHCR.io/Me/Demo:X", Name{Host: "GHCR.io", Path: "Me/Demo", Tag: "X"}, "GHCR.io/Me/Demo:X"},
		{"localhost/demo", Name{Host: "localhost", Path: "demo", Tag: "latest"}, "localhost/demo:latest"},
		{"localhost", Name{Path: "localhost", Tag: "latest"}, "localhost:latest"},
		{"registry:5000/demo", Name{Host: "registry:5000", Path: "demo", Tag: "latest"}, "registry:5000/demo:latest"},
		{"registry:5000", Name{Path: "registry", Tag: "5000"}, "registry:5000"},
		{"127.0.0.1:5000/a/b:t", Name{Host: "127.0.0.1:5000", Path: "a/b", Tag: "t"}, "127.0.0.1:5000/a/b:t"},
		{"[::1]:5000/a", Name{Host: "[::1]:5000", Path: "a", Tag: "latest"}, "[::1]:5000/a:latest"},
		{"[fe80::2]/a", Name{Host: "[fe80::2]", Path: "a", Tag: "latest"}, "[fe80::2]/a:latest"},
		{"demo" + at, Name{Path: "demo", Digest: someDigest}, "demo" + at},
		{"h.io/demo:8b" + at, Name{Host: "h.io", Path: "demo", Tag: "8b", Digest: someDigest}, "h.io/demo:8b" + at},
		{"demo:_t", Name{Path: "demo", Tag: "_t"}, "demo:_t"},
		{strings.Repeat("a", maxPathLen), Name{Path: strings.Repeat("a", maxPathLen), Tag: "latest"},
			strings.Repeat("a", maxPathLen) + ":latest"},
	}
	for _, tt := range tests {
		got, err := ParseName(tt.in)
		if err != nil {
			t.Errorf("ParseName(%q): %v", tt.in, err)
			continue
		}
		if got != tt.want {
			t.Errorf("ParseName(%q) = %+v, want %+v", tt.in, got, tt.want)
		}
		if got.String() != tt.out {
			t.Errorf("ParseName(%q).String() = %q, want %q", tt.in, got, tt.out)
		}
		if again := mustName(t, tt.out); again != tt.want {
			t.Errorf("ParseName(%q) = %+v, want %+v", tt.out, again, tt.want)
		}
		if got.IsLocal() != (tt.want.Host == "") {
			t.Errorf("ParseName(%q).IsLocal() = %v", tt.in, got.IsLocal())
		}
	}
}

func TestParseNameErrors(t *testing.T) {
	tests := []struct{ in, says string }{
		{"", "empty"},
		{":tag", "component of the path is empty"},
		{"demo:", "tag is empty"},
		{"demo:-x", "tag starts with '-'"},
		{"demo:a b", "contains ' '"},
		{"demo:" + strings.Repeat("t", maxTagLen+1), "tag is longer than 128"},
		{"a//b", "component of the path is empty"},
		{"a/", "component of the path is empty"},
		{"localhost/", "component of the path is empty"},
		{"/a/b", "component of the path is empty"},
		{"./model", "host"},
		{"../model", "host"},
		{"a/../b", "does not start and end"},
		{"a/.b", "does not start and end"},
		{"-a", "does not start and end"},
		{"a_", "does not start and end"},
		{"mod\u00e8le", "contains '\u00e8'"},
		{"a\\b", `contains '\\'`},
		{"a\x00b", "contains '\\x00'"},
		{"h:x/a", "port \"x\""},
		{"h:0/a", "port \"0\""},
		{"h:65536/a", "port \"65536\""},
		{":80/a", "host is empty"},
		{"h..io/a", "not a host name"},
		{"[::1/a", "IPv6"},
		{"[::1%eth0]/a", "IPv6"},
		{"[::1]x/a", "after its address"},
		{"ollama://demo", "port \"\""},
		{"demo@", "what follows '@'"},
		{"demo@sha256:abc", "what follows '@'"},
		{"demo@sha512:" + strings.Repeat("0", 128), "what follows '@'"},
		{"demo@" + strings.ToUpper(string(someDigest)), "what follows '@'"},
		{"demo" + "@" + string(someDigest) + ":tag", "what follows '@'"},
		{strings.Repeat("a", maxPathLen+1), "longer than 255"},
		{strings.Repeat("a", 1<<20), "longer than"},
	}
	for _, tt := range tests {
		_, err := ParseName(tt.in)
		if !errors.Is(err, ErrInvalidName) {
			t.Errorf("ParseName(%q): error %v, want ErrInvalidName", clip(tt.in), err)
			continue
		}
		if msg := err.Error(); !strings.Contains(msg, tt.says) || !strings.Contains(msg, "[host[:port]/]path") ||
			len(msg) > 800 {
			t.Errorf("ParseName(%q): %q does not say %q", clip(tt.in), msg, tt.says)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"demo", "a/b:c", "h.io:80/x/y@" + string(someDigest), "[::1]:5000/a", "a//b", "\u00e9:x",
		"localhost/a:b@"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			return
		}
		again, err := ParseName(n.String())
		if err != nil || again != n {
			t.Fatalf("%q is %+v, whose form %q is %+v (%v)", s, n, n.String(), again, err)
		}
		if n.String() != again.String() {
			t.Fatalf("%q: %q and %q", s, n, again)
		}
	})
}
