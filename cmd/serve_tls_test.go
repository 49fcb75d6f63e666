package cmd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/all"
	"github.com/ingotml/ingot/server/certs/certstest"
)

// TestServeTLSFlags checks that wrong files and flags are one error before the server starts.
func TestServeTLSFlags(t *testing.T) {
	t.Setenv("INGOT_HOME", t.TempDir())
	t.Setenv("INGOT_ENGINE", t.TempDir()) // has no engine, which ends a server that would start
	t.Setenv(servers.EnvAPIKey, "")
	t.Setenv("INGOT_HOST", "127.0.0.1:0")
	dir := t.TempDir()
	certFile, keyFile := certstest.Files(t, dir)
	both := []string{"--tls-cert", certFile, "--tls-key", keyFile}
	broken := filepath.Join(dir, "keys")
	certstest.Write(t, broken, []byte("alice ka\nbob kb cost=1\n"))
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"right":        {both, cli.ExitFailed, "engine"},
		"https":        {append([]string{"--host", "https://127.0.0.1:0"}, both...), cli.ExitFailed, "engine"},
		"only cert":    {both[:2], cli.ExitUsage, "belong together"},
		"only key":     {both[2:], cli.ExitUsage, "belong together"},
		"no pair":      {[]string{"--host", "https://127.0.0.1:0"}, cli.ExitUsage, "pass --tls-cert FILE"},
		"path":         {append([]string{"--host", "https://127.0.0.1:0/v1"}, both...), cli.ExitUsage, "supports no path"},
		"missing":      {[]string{"--tls-cert", "none.pem", "--tls-key", keyFile}, cli.ExitFailed, "none.pem: no such file"},
		"swapped":      {[]string{"--tls-cert", keyFile, "--tls-key", certFile}, cli.ExitFailed, "has a key instead"},
		"broken keys":  {[]string{"--api-key-file", broken}, cli.ExitFailed, broken + ":2: the line must be [NAME] KEY"},
		"no host":      {[]string{"--allow-host", "http://models.example/"}, cli.ExitUsage, "write models.example"},
		"no origin":    {[]string{"--allow-origin", "chat.example"}, cli.ExitUsage, "such as https://chat.example"},
		"other origin": {[]string{"--allow-origin", "https://chat.example/x"}, cli.ExitUsage, "write https://chat.example"},
	} {
		code, out, errs := runMain(append([]string{"serve"}, c.args...), "")
		if code != c.code || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: code %d, %q; want %d, %q", name, code, errs, c.code, c.want)
		}
	}
}

// withTLS starts a server of the user's store with TLS, at INGOT_HOST. Its certificate is in SSL_CERT_FILE.
func withTLS(t *testing.T, st *store.Store) *httptest.Server {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile := certstest.Files(t, dir)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	load := func(context.Context, server.Child, func(float64)) (pool.Model, error) {
		return nil, errors.New("no model here")
	}
	core := all.New(server.Options{Version: "1", Store: st, APIKey: secretKey, Load: load})
	t.Cleanup(core.Close)
	s := httptest.NewUnstartedServer(core)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	t.Setenv("INGOT_HOST", s.URL)
	t.Setenv("SSL_CERT_FILE", certFile)
	t.Setenv(servers.EnvAPIKey, secretKey)
	return s
}

// runProgram runs the program in this process's environment.
func runProgram(args ...string) (output string, err error) {
	b, err := exec.Command("ingot", args...).CombinedOutput()
	return string(b), err
}

// TestClientsOfTLS checks that run, ps and stop use a server with TLS, and what they say of one that they cannot use.
// The system's certificates are read once in a process, so the commands run in others.
func TestClientsOfTLS(t *testing.T) {
	asServer(t)
	st, err := store.Open("")
	if err != nil {
		t.Fatal(err)
	}
	s := withTLS(t, st)
	for _, args := range [][]string{{"ps"}, {"ps", "--host", s.URL}, {"stop", "plain"}} {
		if out, err := runProgram(args...); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	out, _ := runProgram("run", "plain", "x", "--verbose")
	if !strings.Contains(out, "using the server at "+s.URL) {
		t.Errorf("run: %s", out)
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("INGOT_HOST", "127.0.0.1:"+port)
	if out, err := runProgram("ps", "--host", "127.0.0.1:"+port); err == nil ||
		!strings.Contains(out, "the server has TLS: set INGOT_HOST to https://127.0.0.1:"+port) {
		t.Errorf("without https: %s, %v", out, err)
	}
	t.Setenv("INGOT_HOST", s.URL)
	t.Setenv("SSL_CERT_FILE", os.DevNull)
	if out, err := runProgram("ps"); err == nil || !strings.Contains(out, "name the CA's file in SSL_CERT_FILE") {
		t.Errorf("an unknown CA: %s, %v", out, err)
	}
}
