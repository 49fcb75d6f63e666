package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/server/address"
	"github.com/ingotml/ingot/server/ollama"
)

// listenError explains why listening on an address failed. If the address is in use, it names the program that uses it
// as far as possible, and says how to choose another address.
func listenError(ctx context.Context, at address.Address, err error) error {
	taken := isTaken(err)
	var inner *os.SyscallError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	what := err.Error()
	if taken {
		if by := whoListens(ctx, at); by != "" {
			what = by + " uses it already"
		}
	}
	other := at
	if other.Port++; at.Port == 0 || other.Port > 65535 {
		other.Port = address.DefaultPort
	}
	return fmt.Errorf("listen on %s: %s; choose another address with `ingot serve --host %s` or %s",
		at.Listen(), what, other.Listen(), address.Env)
}

// isTaken reports whether an error means that the address is in use.
func isTaken(err error) bool {
	const windows = syscall.Errno(10048) // WSAEADDRINUSE, which differs from syscall.EADDRINUSE on Windows
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, windows)
}

// whoListens names the program that listens at an address, or returns "". It sends the program a version request, and
// asks the system for the process.
func whoListens(ctx context.Context, at address.Address) string {
	by := []string{askVersion(ctx, at), portOwner(at.Port)}
	return strings.Trim(strings.Join(by, ", "), ", ")
}

// askVersion identifies a server by its response to /api/version: ingot, Ollama, or another HTTP server.
func askVersion(ctx context.Context, at address.Address) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	at.Scheme = "http" // a server with TLS says so in its answer
	status, b, err := fetchText(ctx, at.URL()+"/api/version")
	if err != nil {
		return ""
	}
	var v ollama.VersionJSON
	switch {
	case servers.IsTLSServer(status, b):
		return "an HTTPS server"
	case status == http.StatusUnauthorized:
		return "a server that requires an API key"
	case status != http.StatusOK || json.Unmarshal(b, &v) != nil || v.Version == "":
		return "an HTTP server"
	case v.Ingot != "":
		return "ingot " + cli.Excerpt(v.Ingot, 40)
	}
	if _, b, err := fetchText(ctx, at.URL()); err == nil && strings.HasPrefix(string(b), "Ollama") {
		return "Ollama " + cli.Excerpt(v.Version, 40)
	}
	return "a server with Ollama's API, version " + cli.Excerpt(v.Version, 40)
}

func fetchText(ctx context.Context, url string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	return response.StatusCode, b, err
}

// lsofOwner returns the process named in the output of `lsof -Fpc`.
func lsofOwner(text string) string {
	var pid, name string
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "p") && pid == "":
			pid = line[1:]
		case strings.HasPrefix(line, "c") && name == "":
			name = line[1:]
		}
	}
	if pid == "" {
		return ""
	}
	return fmt.Sprintf("process %s (%s)", pid, name)
}
