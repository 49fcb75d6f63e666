package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server/address"
)

// TestListenError checks that the error names the program at the address and another address.
func TestListenError(t *testing.T) {
	for name, c := range map[string]struct {
		responses map[string]string // by path; "401" is the status
		want      string
	}{
		"ingot":    {map[string]string{"/api/version": `{"version":"1.2","ingot":"1.2","store":"x"}`}, "ingot 1.2"},
		"Ollama":   {map[string]string{"/api/version": `{"version":"0.33.1"}`, "/": "Ollama is running"}, "Ollama 0.33.1"},
		"alike":    {map[string]string{"/api/version": `{"version":"7\u001b[2J"}`}, "a server with Ollama's API, version 7"},
		"locked":   {map[string]string{"/api/version": "401"}, "a server that requires an API key"},
		"a server": {map[string]string{"/": "hello"}, "an HTTP server"},
	} {
		t.Run(name, func(t *testing.T) {
			there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, ok := c.responses[r.URL.Path]
				switch {
				case text == "401":
					w.WriteHeader(http.StatusUnauthorized)
				case !ok:
					w.WriteHeader(http.StatusNotFound)
				}
				fmt.Fprint(w, text)
			}))
			defer there.Close()
			at, _ := address.Parse(there.URL)
			_, err := net.Listen("tcp", at.Listen())
			if err == nil {
				t.Fatal("the address is free")
			}
			text := listenError(t.Context(), at, err).Error()
			other := fmt.Sprintf("choose another address with `ingot serve --host 127.0.0.1:%d` or INGOT_HOST", at.Port+1)
			if !strings.HasPrefix(text, "listen on "+at.Listen()+": "+c.want) ||
				!strings.Contains(text, "uses it already; "+other) || strings.Contains(text, "\x1b") {
				t.Errorf("%q, want %s, %s", text, c.want, other)
			}
		})
	}
	// An address of another machine is not in use, and no request is sent to it.
	at, _ := address.Parse("192.0.2.1:1")
	_, err := net.Listen("tcp", at.Listen())
	if err == nil {
		t.Skip("this machine has an address for documentation (RFC 5737)")
	}
	text := listenError(t.Context(), at, err).Error()
	if strings.Contains(text, "uses it already") || !strings.Contains(text, "--host 192.0.2.1:2") {
		t.Error(text)
	}
}

func TestLsofOwner(t *testing.T) {
	for text, want := range map[string]string{
		"p812\ncollama\nf3\n":  "process 812 (ollama)",
		"p1\nca\nf1\np2\ncb\n": "process 1 (a)",
		"":                     "",
	} {
		if got := lsofOwner(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
