package cmd

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

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/address"
)

// listenError says why an address cannot be had: where it is taken by whom, as far as can be told, and how to choose another.
func listenError(ctx context.Context, at address.Address, err error) error {
	taken := isTaken(err)
	var inner *os.SyscallError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	what := err.Error()
	if taken {
		if by := whoListens(ctx, at); by != "" {
			what = by + " is there already"
		}
	}
	other := at
	if other.Port++; at.Port == 0 || other.Port > 65535 {
		other.Port = address.DefaultPort
	}
	return fmt.Errorf("listen on %s: %s; `ingot serve --host %s` or %s chooses another address", at.Listen(), what, other.Listen(), address.Env)
}

// isTaken tells whether somebody else listens where an error says that one could not.
func isTaken(err error) bool {
	const windows = syscall.Errno(10048) // WSAEADDRINUSE, which is not syscall.EADDRINUSE there
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, windows)
}

// whoListens names the program at an address, "" where nothing tells: it is asked as a server of models, and the system for its process.
func whoListens(ctx context.Context, at address.Address) string {
	by := []string{askVersion(ctx, at), portOwner(at.Port)}
	return strings.Trim(strings.Join(by, ", "), ", ")
}

// askVersion names a server that answers like ours, or like Ollama's.
func askVersion(ctx context.Context, at address.Address) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status, b, err := fetchText(ctx, at.URL()+"/api/version")
	if err != nil {
		return ""
	}
	var v server.VersionJSON
	switch {
	case status == http.StatusUnauthorized:
		return "a server that wants an API key"
	case status != http.StatusOK || json.Unmarshal(b, &v) != nil || v.Version == "":
		return "an HTTP server"
	case v.Ingot != "":
		return "ingot " + clip(v.Ingot, 40)
	}
	if _, b, err := fetchText(ctx, at.URL()); err == nil && strings.HasPrefix(string(b), "Ollama") {
		return "Ollama " + clip(v.Version, 40)
	}
	return "a server with Ollama's API, version " + clip(v.Version, 40)
}

func fetchText(ctx context.Context, url string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	return answer.StatusCode, b, err
}

// lsofOwner names the process in what `lsof -Fpc` prints.
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
