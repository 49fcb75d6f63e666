package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/all"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/ollama"
)

// Secrets that an impostor must not see.
const (
	secretKey    = "s3cret-key"
	secretPrompt = "s3cret-prompt"
)

// heard records the requests that a program received, with headers.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) add(r *http.Request) {
	body, _ := io.ReadAll(r.Body) // an incomplete body counts too
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(&h.text, "%s %s %v %s\n", r.Method, r.URL, r.Header, body)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// withImpostor starts another program at INGOT_HOST that claims to serve the user's store and responds like a server.
// forged responds to its challenges.
func withImpostor(t *testing.T, forged http.HandlerFunc) *heard {
	t.Helper()
	asServer(t)
	store, err := store.Open("")
	if err != nil {
		t.Fatal(err)
	}
	h := &heard{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.add(r)
		switch r.URL.Path {
		case identity.Path:
			forged(w, r)
		case "/api/version":
			version := ollama.VersionJSON{Version: "1", Ingot: "1", Store: identity.StoreID(store)}
			_ = json.NewEncoder(w).Encode(version)
		case "/api/ps":
			fmt.Fprintln(w, `{"models":[]}`)
		default:
			fmt.Fprintln(w, lastLine)
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("INGOT_HOST", s.URL)
	t.Setenv(servers.EnvAPIKey, secretKey)
	return h
}

func (h *heard) checkDeaf(t *testing.T, what string) {
	t.Helper()
	got := h.String()
	if strings.Contains(got, secretKey) || strings.Contains(got, secretPrompt) || !strings.Contains(got, identity.Path) {
		t.Errorf("%s: the impostor received:\n%s", what, got)
	}
}

// TestImpostor checks that another user's program at the server's port receives neither prompts nor keys, even if it
// knows everything public about the store. run loads the model itself; other commands fail.
func TestImpostor(t *testing.T) {
	forgeries := map[string]http.HandlerFunc{
		"none":    http.NotFound,
		"made up": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"proof":"%064x"}`, 1) },
	}
	for name, forged := range forgeries {
		h := withImpostor(t, forged)
		code, _, errs := runMain([]string{"run", "talk", secretPrompt}, "")
		// Loading the model in this process fails, which shows that it was tried: there is no engine, or no cgo.
		local := strings.Contains(errs, "INGOT_ENGINE") || strings.Contains(errs, mlx.ErrNoCgo.Error())
		if code != 1 || !local || !strings.Contains(errs, "note: the model runs in this process, as with --local: http://") ||
			!strings.Contains(errs, identity.ErrUnproven.Error()) {
			t.Errorf("%s: run: code %d, %s", name, code, errs)
		}
		h.checkDeaf(t, name+": run")
		for _, args := range [][]string{{"ps"}, {"stop", secretPrompt},
			{"launch", "openclaw", "--model", secretPrompt, "--yes"}} {
			if args[0] == "launch" {
				if runtime.GOOS == "windows" {
					continue // the client is a shell script
				}
				withClient(t, "openclaw")
			}
			code, _, errs := runMain(args, "")
			if code != 1 || strings.Count(errs, "\n") != 1 ||
				!strings.Contains(errs, identity.ErrUnproven.Error()) || !strings.Contains(errs, "--host") {
				t.Errorf("%s: %v: code %d, %s", name, args, code, errs)
			}
		}
		h.checkDeaf(t, name+": others")
	}
}

// withClient puts a coding client on the PATH that fails. launch replaces itself by the client, so the client's success
// would be that of the tests.
func withClient(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestRelayingImpostor checks that a program that relays challenges to the user's real server at another port receives
// nothing either.
func TestRelayingImpostor(t *testing.T) {
	var genuine string
	h := withImpostor(t, func(w http.ResponseWriter, r *http.Request) {
		response, err := http.Get(genuine + r.URL.RequestURI())
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("the real server answers %s", response.Status)
		}
		_, _ = io.Copy(w, response.Body)
	})
	store, err := store.Open("")
	if err != nil {
		t.Fatal(err)
	}
	real := httptest.NewServer(all.New(server.Options{Version: "1", Store: store, APIKey: secretKey}))
	t.Cleanup(real.Close)
	genuine = real.URL
	code, _, errs := runMain([]string{"run", "talk", secretPrompt}, "")
	if code != 1 || !strings.Contains(errs, "the proof is wrong") {
		t.Errorf("code %d, %s", code, errs)
	}
	h.checkDeaf(t, "run")
}

// TestNamedServer checks that a server named on the command line gets the key without a proof.
func TestNamedServer(t *testing.T) {
	h := withImpostor(t, http.NotFound)
	if code, _, errs := runMain([]string{"ps", "--host", os.Getenv("INGOT_HOST")}, ""); code != 0 {
		t.Errorf("code %d, %s", code, errs)
	}
	if got := h.String(); !strings.Contains(got, "Bearer "+secretKey) || strings.Contains(got, identity.Path) {
		t.Errorf("it received\n%s", got)
	}
}

// TestExposedSecret checks that a secret with too wide permissions is replaced, and that server and client use the new
// one.
func TestExposedSecret(t *testing.T) {
	f := asServer(t, lastLine)
	st, err := store.Open("")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(st.Root(), "server-secret")
	if err := os.WriteFile(path, []byte(strings.Repeat("k", store.SecretSize)), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, errs := runMain([]string{"run", "talk", "Well?"}, "")
	if code != 0 || f.path != "/api/chat" {
		t.Errorf("code %d, %s", code, errs)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 && filepath.Separator == '/' {
		t.Errorf("the secret's file: %v, %v", info.Mode(), err)
	}
}
