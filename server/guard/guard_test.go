package guard

import (
	"crypto/tls"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server/wire"
)

// status returns 200 if a guard accepts a request, or else the status and the message.
func status(t *testing.T, o Options, host, origin string, secure bool) (int, string) {
	t.Helper()
	r := httptest.NewRequest("POST", "http://localhost/api/chat", nil)
	r.Host = host
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	if secure {
		r.TLS = &tls.ConnectionState{}
	}
	got, message := 200, ""
	New(o).Check(httptest.NewRecorder(), r, false, func(e wire.Error) { got, message = e.Status, e.Message })
	return got, message
}

// TestHosts checks which Host headers are accepted without options: those that a page on the Internet cannot have.
func TestHosts(t *testing.T) {
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"127.0.0.1:11434": 200, "[::1]:11434": 200, "8.8.8.8": 200, "localhost": 200, "a.localhost:1": 200, "": 200,
		machine: 200, strings.ToUpper(machine) + ":80": 200,
		"host.docker.internal:11434": 200, "HOST.DOCKER.INTERNAL.": 200, "gateway.containers.internal": 200,
		"mybox.local": 200, "a.b.local:80": 200, "ollama:11434": 200, "ingot": 200,
		"evil.example": 403, "local.evil.example": 403, "internal": 200,
		"evil.internal.example": 403, "evillocal.example": 403,
		"evil.example:11434": 403, "evil.local.": 200, "evil..local": 403, "e vil": 403, "evil.example#.local": 403,
		"evil.example/.local": 403, "*": 403, "*.local": 403, ".local": 403,
	} {
		if got, message := status(t, Options{Host: "127.0.0.1"}, host, "", false); got != want {
			t.Errorf("%q: status %d, want %d: %s", host, got, want, message)
		}
	}
}

// TestPrivatePages checks that a page under a private name is another origin, unless the name is this machine's.
func TestPrivatePages(t *testing.T) {
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := ParseHosts([]string{"mine.local"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"evil.local:11434": 403, "evil.internal": 403, "evil": 403, "mine.local": 200, machine: 200, "127.0.0.1": 200,
		machine + ".local:11434": 200, "localhost": 200,
	} {
		got, message := status(t, Options{Hosts: allowed}, host, "http://"+host, false)
		if got != want {
			t.Errorf("%q: status %d, want %d: %s", host, got, want, message)
		}
		if got, message := status(t, Options{Hosts: allowed}, host, "http://localhost:3000", false); got != 200 {
			t.Errorf("%q: a page of this machine: status %d: %s", host, got, message)
		}
	}
}

// TestHostPatterns checks what patterns of --allow-host accept.
func TestHostPatterns(t *testing.T) {
	for pattern, c := range map[string]struct {
		host   string
		secure bool
		want   int
	}{
		"models.example":          {"Models.Example:9999", false, 200},
		"Models.Example.":         {"models.example", false, 200},
		"a.example ":              {"", false, 0},
		"models.example:8080":     {"models.example:8080", false, 200},
		"models.example:8081":     {"models.example:8080", false, 403},
		"models.example:80":       {"models.example", false, 200},
		"models.example:443":      {"models.example", true, 200},
		"models.example:0443":     {"models.example", true, 403},
		"other.example":           {"models.example", false, 403},
		"*.example":               {"models.example", false, 200},
		"*.models.example":        {"models.example", false, 403},
		"*.corp":                  {"a.b.corp", false, 200},
		"*.evil":                  {"a.notevil", false, 403},
		"*.port:3000":             {"a.port:3000", false, 200},
		"*.port:3001":             {"a.port:3000", false, 403},
		"*":                       {"anything.example:5", false, 200},
		"*:7000":                  {"anything.example:7000", false, 200},
		"*:7001":                  {"anything.example:7000", false, 403},
		"star.example:*":          {"star.example:7000", false, 200},
		"xn--bcher-kva.example":   {"xn--bcher-kva.example", false, 200},
		"192.168.7.1":             {"192.168.7.1", false, 200},
		"[fe80::1]:80":            {"[fe80::1]:80", false, 200},
		"http://models.example/a": {"", false, 0},
		"bücher.example":          {"", false, 0},
		"a.*.example":             {"", false, 0},
		"a*.example":              {"", false, 0},
		"**":                      {"", false, 0},
		"":                        {"", false, 0},
		":80":                     {"", false, 0},
		"a..example":              {"", false, 0},
		"a.example:port":          {"", false, 0},
		"a.example:70000":         {"", false, 0},
		"a.example:":              {"", false, 0},
		"a example":               {"", false, 0},
		"a.example/path":          {"", false, 0},
		"*.":                      {"", false, 0},
	} {
		hosts, err := ParseHosts([]string{"first.example", pattern})
		if (err != nil) != (c.want == 0) {
			t.Errorf("%q: error %v", pattern, err)
		}
		if err != nil {
			if !strings.Contains(err.Error(), pattern) {
				t.Errorf("%q: the error does not name it: %v", pattern, err)
			}
			continue
		}
		if got, message := status(t, Options{Hosts: hosts}, c.host, "", c.secure); got != c.want {
			t.Errorf("%q: %s has status %d, want %d: %s", pattern, c.host, got, c.want, message)
		}
	}
}

// TestOriginPatterns checks what patterns of --allow-origin accept.
func TestOriginPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, origin string
		want            int
	}{
		{"https://chat.example", "https://chat.example", 200},
		{"HTTPS://Chat.Example", "https://chat.example", 200},
		{"https://chat.example:443", "https://chat.example", 200},
		{"https://chat.example", "https://chat.example:443", 200},
		{"https://chat.example", "http://chat.example", 403},
		{"https://chat.example", "https://chat.example:8443", 403},
		{"https://chat.example:*", "https://chat.example:8443", 200},
		{"https://chat.example", "https://chat.example.evil.example", 403},
		{"https://chat.example", "https://evilchat.example", 403},
		{"https://*.example", "https://a.b.example", 200},
		{"https://*.chat.example", "https://chat.example", 403},
		{"http://*.corp:3000", "http://tool.corp:3000", 200},
		{"http://*.corp:3000", "http://tool.corp", 403},
		{"http://*.corp:3000", "https://tool.corp:3000", 403},
		{"http://*:3000", "http://any.example:3000", 200},
		{"https://*", "https://any.example", 200},
		{"https://*", "https://any.example:8443", 403},
		{"chrome-extension://*", "chrome-extension://gphandlahdpffmccakmbngmbjnjiiahp", 200},
		{"chrome-extension://abc", "chrome-extension://abd", 403},
		{"moz-extension://*", "moz-extension://2c127fa4-62c7-7e4f-90e5-472b45eecfdc", 200},
		{"moz-extension://*", "chrome-extension://abc", 403},
		{"capacitor://localhost", "capacitor://localhost", 200},
		{"http://[::5]:80", "http://[::5]", 200},
		{"null", "null", 200},
		{"https://*", "null", 403},
		{"*", "null", 200},
		{"*", "https://any.example:5", 200},
		{"https://user.example", "https://a@user.example", 403},
		{"https://x.example", "x.example", 403},
		{"chat.example", "", 0},
		{"://chat.example", "", 0},
		{"https://", "", 0},
		{"https://chat.example/", "", 0},
		{"https://chat.example/path", "", 0},
		{"https://chat.*.example", "", 0},
		{"*://chat.example", "", 0},
		{"https://chat.example:x", "", 0},
		{"https://bücher.example", "", 0},
		{"https://a b", "", 0},
		{"", "", 0},
	} {
		origins, err := ParseOrigins([]string{c.pattern})
		if (err != nil) != (c.want == 0) {
			t.Errorf("%q: error %v", c.pattern, err)
		}
		if err != nil {
			continue
		}
		if got, message := status(t, Options{Origins: origins}, "localhost", c.origin, false); got != c.want {
			t.Errorf("%q: %s has status %d, want %d: %s", c.pattern, c.origin, got, c.want, message)
		}
	}
}

// TestRemedies checks that errors about patterns say what to write.
func TestRemedies(t *testing.T) {
	for pattern, want := range map[string]string{
		"https://models.example:8080/v1": "write models.example:8080",
		"a.*.example":                    "as in *.example.com",
		"bücher.example":                 "xn--",
	} {
		if _, err := ParseHosts([]string{pattern}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
	for pattern, want := range map[string]string{
		"chat.example":           "such as https://chat.example",
		"https://chat.example/a": "write https://chat.example",
		"https://":               "write https://* for all",
	} {
		if _, err := ParseOrigins([]string{pattern}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
}

// TestOwnNames checks the names of a machine, whose name may have a domain or be unknown.
func TestOwnNames(t *testing.T) {
	for machine, want := range map[string][]string{
		"box": {"box", "box.local", "listens"}, "Box.local": {"box.local", "listens"}, "box.corp.": {"box.corp", "listens"},
		"": {"listens"},
	} {
		own := ownNames("listens", func() (string, error) {
			if machine == "" {
				return "", errors.New("unknown")
			}
			return machine, nil
		})
		for _, name := range want {
			if !own.match(name, "80") {
				t.Errorf("%s: %s is not its own", machine, name)
			}
		}
		if len(own) != len(want) || own.match("box.other", "80") {
			t.Errorf("%s: %+v", machine, own)
		}
	}
}
