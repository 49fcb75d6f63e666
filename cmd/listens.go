package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/address"
)

// whoListens names the program at an address, "" where nothing tells: it is asked as a server of models, else the system is.
func whoListens(ctx context.Context, at address.Address) string {
	if by := askVersion(ctx, at); by != "" {
		return by
	}
	return portOwner(at.Port)
}

// askVersion names a server that answers like ours, or like Ollama's.
func askVersion(ctx context.Context, at address.Address) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL()+"/api/version", nil)
	if err != nil {
		return ""
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	var v server.VersionJSON
	b, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	switch {
	case err != nil || json.Unmarshal(b, &v) != nil || answer.StatusCode == http.StatusOK && v.Version == "":
		return "an HTTP server"
	case answer.StatusCode == http.StatusUnauthorized:
		return "a server that wants an API key"
	case answer.StatusCode != http.StatusOK:
		return "an HTTP server"
	case v.Ingot != "":
		return "ingot " + v.Ingot
	}
	return fmt.Sprintf("Ollama %s", v.Version)
}
