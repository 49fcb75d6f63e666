package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/internal/limits"
)

const example = `{"registries": {
	"*": {"timeout": "2m", "retries": 10, "chunk_size": "16MiB", "concurrency": 3},
	"registry.example.com": {"timeout": "90s", "retries": 0},
	"registry.example.com:5000": {"chunk_size": 1048576},
	"DOCKER.io": {"retries": "1"},
	"[2001:db8::1]": {"retries": 2},
	"huggingface.co": {}
}}`

func TestHost(t *testing.T) {
	f, err := Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	all := Host{2 * time.Minute, 11, 16 << 20, 3}
	for host, want := range map[string]Host{
		"other.example.com":         all,
		"huggingface.co":            all,
		"registry.example.com":      {90 * time.Second, 1, 16 << 20, 3},
		"Registry.Example.com:5000": {90 * time.Second, 1, 1 << 20, 3},
		"registry.example.com:5001": {90 * time.Second, 1, 16 << 20, 3},
		"[2001:DB8::1]:5000":        {2 * time.Minute, 3, 16 << 20, 3},
		"[2001:db8::1]":             {2 * time.Minute, 3, 16 << 20, 3},
		"[2001:db8::2]":             all,
		"index.docker.io":           {2 * time.Minute, 2, 16 << 20, 3},
	} {
		if diff := cmp.Diff(want, f.Host(host)); diff != "" {
			t.Errorf("%s: %s", host, diff)
		}
	}
	if got := (*File)(nil).Host("a"); got != (Host{}) {
		t.Errorf("of no file: %+v", got)
	}
}

func TestBadFiles(t *testing.T) {
	one := func(setting string) string { return `{"registries":{"a.example":{` + setting + `}}}` }
	for text, says := range map[string]string{
		``:                                  "JSON byte 0",
		`{`:                                 "JSON byte 1",
		`[]`:                                "want an object such as",
		`{"registries":{}} x`:               "JSON byte 18",
		`{"registry":{}}`:                   "registry: unknown key, want registries",
		`{"registries":[]}`:                 "registries: want an object",
		`{"registries":{"a.example":3}}`:    "registries.a.example: want an object",
		`{"registries":{},"registries":{}}`: "registries: the key comes twice",
		`{"registries":{"a.example":{},"a.example":{}}}`: "registries.a.example: the key comes twice",
		`{"registries":{"a.example":{},"A.example":{}}}`: "registries.A.example: the host comes twice",
		`{"registries":{"https://a.example":{}}}`:        "registries.https://a.example: not a host",
		`{"registries":{"a.example/path":{}}}`:           "registries.a.example/path: not a host",
		`{"registries":{"*.example":{}}}`:                "registries.*.example: not a host",
		`{"registries":{"local":{}}}`:                    "registries.local: not a host",
		`{"registries":{"":{}}}`:                         "registries.: not a host",
		one(`"time_out":"1m"`):                           "registries.a.example.time_out: unknown key, want timeout, retries",
		one(`"timeout":"2x"`):                            `registries.a.example.timeout: "2x" is not a duration`,
		one(`"timeout":2`):                               `registries.a.example.timeout: "2" is not a duration`,
		one(`"timeout":"0s"`):                            `registries.a.example.timeout: "0s" is not a duration`,
		one(`"timeout":"-5m"`):                           "is not a duration",
		one(`"timeout":"25h"`):                           "is not a duration from 100ms to 24h",
		one(`"timeout":null`):                            "registries.a.example.timeout: want a string or a number",
		one(`"timeout":{"a":{}}`):                        "registries.a.example.timeout: want a string or a number",
		one(`"timeout":"1m","timeout":"2m"`):             "registries.a.example.timeout: the key comes twice",
		one(`"retries":-1`):                              `registries.a.example.retries: "-1" is not a number from 0 to 1000`,
		one(`"retries":1.5`):                             "is not a number from 0 to 1000",
		one(`"retries":1e2`):                             "is not a number from 0 to 1000",
		one(`"retries":99999999999999999999`):            "is not a number from 0 to 1000",
		one(`"chunk_size":"100kib"`):                     `"100kib" is not a size of at least 256KiB`,
		one(`"chunk_size":"much"`):                       "is not a size of at least 256KiB",
		one(`"concurrency":0`):                           "is not a number from 1 to 1000",
		one(`"concurrency":true`):                        "want a string or a number",
		one("\"timeout\":\"\xff\""):                      "JSON byte",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// TestConfigFileLimits: a file that is too large, or has too many hosts, is refused.
func TestConfigFileLimits(t *testing.T) {
	var hosts strings.Builder
	for i := range limits.NamedHosts {
		fmt.Fprintf(&hosts, `"h%d.example":{},`, i)
	}
	if _, err := Parse([]byte(`{"registries":{` + strings.TrimSuffix(hosts.String(), ",") + `}}`)); err != nil {
		t.Error(err)
	}
	hosts.WriteString(`"one.more.example":{},`)
	for says, text := range map[string]string{
		"KiB":                `{}` + strings.Repeat(" ", limits.ConfigFile),
		"more than 256 keys": `{"registries":{` + strings.TrimSuffix(hosts.String(), ",") + `}}`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestLoad: the variable, then XDG's folder; errors name the file.
func TestLoad(t *testing.T) {
	own, home := filepath.Join(t.TempDir(), "own.json"), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv(FileEnv, "")
	load := func(retries int) {
		t.Helper()
		f, err := Load()
		if err != nil || f.Host("a.example").Attempts != retries {
			t.Errorf("%+v, %v, want %d attempts", f.Host("a.example"), err, retries)
		}
	}
	fails := func(says ...string) {
		t.Helper()
		_, err := Load()
		for _, word := range says {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%v, want %q", err, word)
			}
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	load(0) // no file
	shared := filepath.Join(home, "ingot", "config.json")
	write(shared, `{"registries":{"*":{"retries":3}}}`)
	load(4)
	t.Setenv(FileEnv, own)
	fails(FileEnv, own) // the file that is named has to exist
	write(own, `{"registries":{"*":{"retries":5}}}`)
	load(6)
	write(own, `{"registries":{"*":{"retries":"x"}}}`)
	fails(own, "registries.*.retries", `"x"`)
	t.Setenv(FileEnv, t.TempDir())
	fails("is a directory")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"registries":{"a.example":{"timeout":"1m"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q", err)
			}
			return
		}
		for name, h := range file.hosts {
			if h.Timeout < 0 || h.Attempts < 0 || h.Attempts > MaxRetries+1 || h.Concurrency < 0 || h.ChunkSize < 0 {
				t.Errorf("%s: %+v", name, h)
			}
		}
	})
}
