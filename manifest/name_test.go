package manifest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/storetest"
)

func TestParseName(t *testing.T) {
	at := "@" + string(storetest.SomeDigest)
	tests := []struct {
		in   string
		want manifest.Name
		out  string // canonical
	}{
		{"demo", manifest.Name{Path: "demo", Tag: "latest"}, "demo:latest"},
		{"demo:8b", manifest.Name{Path: "demo", Tag: "8b"}, "demo:8b"},
		{"llama3.2:1b", manifest.Name{Path: "llama3.2", Tag: "1b"}, "llama3.2:1b"},
		{"Qwen/Qwen3-0.6B", manifest.Name{Path: "Qwen/Qwen3-0.6B", Tag: "latest"}, "Qwen/Qwen3-0.6B:latest"},
		{"a/b/c/d/e:V_1.x-y", manifest.Name{Path: "a/b/c/d/e", Tag: "V_1.x-y"}, "a/b/c/d/e:V_1.x-y"},
		{"a__b/c--d", manifest.Name{Path: "a__b/c--d", Tag: "latest"}, "a__b/c--d:latest"},
		{"ghcr.io/me/models/demo", manifest.Name{Host: "ghcr.io", Path: "me/models/demo", Tag: "latest"},
			"ghcr.io/me/models/demo:latest"},
		{"GHCR.io/Me/Demo:X", manifest.Name{Host: "GHCR.io", Path: "Me/Demo", Tag: "X"}, "GHCR.io/Me/Demo:X"},
		{"localhost/demo", manifest.Name{Host: "localhost", Path: "demo", Tag: "latest"}, "localhost/demo:latest"},
		{"localhost", manifest.Name{Path: "localhost", Tag: "latest"}, "localhost:latest"},
		{"registry:5000/demo", manifest.Name{Host: "registry:5000", Path: "demo", Tag: "latest"},
			"registry:5000/demo:latest"},
		{"registry:5000", manifest.Name{Path: "registry", Tag: "5000"}, "registry:5000"},
		{"127.0.0.1:5000/a/b:t", manifest.Name{Host: "127.0.0.1:5000", Path: "a/b", Tag: "t"}, "127.0.0.1:5000/a/b:t"},
		{"[::1]:5000/a", manifest.Name{Host: "[::1]:5000", Path: "a", Tag: "latest"}, "[::1]:5000/a:latest"},
		{"[fe80::2]/a", manifest.Name{Host: "[fe80::2]", Path: "a", Tag: "latest"}, "[fe80::2]/a:latest"},
		{"demo" + at, manifest.Name{Path: "demo", Digest: storetest.SomeDigest}, "demo" + at},
		{"h.io/demo:8b" + at, manifest.Name{Host: "h.io", Path: "demo", Tag: "8b", Digest: storetest.SomeDigest},
			"h.io/demo:8b" + at},
		{"demo:_t", manifest.Name{Path: "demo", Tag: "_t"}, "demo:_t"},
		{strings.Repeat("a", manifest.MaxPathLen),
			manifest.Name{Path: strings.Repeat("a", manifest.MaxPathLen), Tag: "latest"},
			strings.Repeat("a", manifest.MaxPathLen) + ":latest"},
	}
	for _, tt := range tests {
		got, err := manifest.ParseName(tt.in)
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
		if again := storetest.MustName(t, tt.out); again != tt.want {
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
		{"demo:" + strings.Repeat("t", manifest.MaxTagLen+1), "tag is longer than 128"},
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
		{"demo@" + strings.ToUpper(string(storetest.SomeDigest)), "what follows '@'"},
		{"demo" + "@" + string(storetest.SomeDigest) + ":tag", "what follows '@'"},
		{strings.Repeat("a", manifest.MaxPathLen+1), "longer than 255"},
		{strings.Repeat("a", 1<<20), "longer than"},
	}
	for _, tt := range tests {
		_, err := manifest.ParseName(tt.in)
		if !errors.Is(err, manifest.ErrInvalidName) {
			t.Errorf("ParseName(%q): error %v, want ErrInvalidName", manifest.Clip(tt.in), err)
			continue
		}
		if msg := err.Error(); !strings.Contains(msg, tt.says) || !strings.Contains(msg, "[host[:port]/]path") ||
			len(msg) > 800 {
			t.Errorf("ParseName(%q): %q does not say %q", manifest.Clip(tt.in), msg, tt.says)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"demo", "a/b:c", "h.io:80/x/y@" + string(storetest.SomeDigest), "[::1]:5000/a", "a//b",
		"\u00e9:x",
		"localhost/a:b@"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := manifest.ParseName(s)
		if err != nil {
			return
		}
		again, err := manifest.ParseName(n.String())
		if err != nil || again != n {
			t.Fatalf("%q is %+v, whose form %q is %+v (%v)", s, n, n.String(), again, err)
		}
		if n.String() != again.String() {
			t.Fatalf("%q: %q and %q", s, n, again)
		}
	})
}
