//go:build linux

package cmd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// TestClients tests a server with the official clients of its APIs, which testdata/clients/setup.sh installs. Each
// testdata/clients/test_NAME.py tests one of them; clients.py there documents the variables.
func TestClients(t *testing.T) {
	testdata, err := filepath.Abs(filepath.Join("..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	clients := filepath.Join(testdata, "clients")
	venv := filepath.Join(testdata, "..", ".cache", "clients-venv")
	if why := unlike(filepath.Join(clients, "requirements.txt"), filepath.Join(venv, "requirements.txt")); why != "" {
		runtest.Clients.Need(t, errors.New("the clients are missing: run testdata/clients/setup.sh: "+why))
	}
	tests, err := filepath.Glob(filepath.Join(clients, "test_*.py"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests of clients: %v", err)
	}
	needEngine(t)
	home := filepath.Join(t.TempDir(), "store")
	create := func(name, model, lines string) {
		file := filepath.Join(t.TempDir(), "Modelfile")
		text := "FROM " + filepath.Join(testdata, "models", model) + "\n" + lines
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		ingot(t, home, "create", name, "-f", file)
	}
	const template = `TEMPLATE """{% for t in tools or [] %}{{ t.function.name }}: ` +
		`{{ t.function.description }} {% endfor %}` +
		`{% for m in messages %}{{ m.content }} {% endfor %}{% if enable_thinking %}<think>{% endif %}{# </think> #}"""` +
		"\nPARAMETER temperature 0.7\n"
	create("story", "demo", "")
	create("talk", "demo", template+"PARSER qwen3\n")
	create("calls", "demo", template+"PARSER llama3\n")
	create("sees", "qwen3_5-vision", "")
	registry := newTestRegistry(t.Cleanup).addr
	s := serveStore(t, home, nil, "--insecure-registry", registry)
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "NO_PROXY=*", "PYTHONDONTWRITEBYTECODE=1",
		"INGOT_URL=http://" + s.addr, "INGOT_MODEL=story:latest", "INGOT_CHAT_MODEL=talk:latest",
		"INGOT_CALL_MODEL=calls:latest", "INGOT_VISION_MODEL=sees:latest",
		"INGOT_REGISTRY=" + registry,
		"INGOT_CHECKPOINT=" + filepath.Join(testdata, "models", "demo"), "INGOT_PICTURES=" +
			filepath.Join(testdata, "pictures"),
		"INGOT_PDF=" + filepath.Join(testdata, "..", "server", "pdf", "testdata", "report.pdf"),
	}
	for _, test := range tests {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(test), "test_"), ".py")
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			c := exec.CommandContext(ctx, filepath.Join(venv, "bin", "python"), test, "-v")
			c.Env = env
			out, err := c.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s\nserver log: %s", err, out, s.errs)
				return
			}
			t.Logf("%s", out)
		})
		response, err := http.Get("http://" + s.addr + "/healthz")
		if err != nil {
			t.Fatalf("the server after the tests of %s: %v\n%s", name, err, s.errs)
		}
		response.Body.Close()
	}
}

// unlike explains how a file differs from another, or returns "" for a copy.
func unlike(file, other string) string {
	a, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	b, err := os.ReadFile(other)
	if err != nil {
		return err.Error()
	}
	if !bytes.Equal(a, b) {
		return fmt.Sprintf("%s is not what it was at the last time", filepath.Base(file))
	}
	return ""
}
