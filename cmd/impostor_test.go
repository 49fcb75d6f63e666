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

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/identity"
)

// Secrets that no impostor may see.
const (
	secretKey    = "s3cret-key"
	secretPrompt = "s3cret-prompt"
)

// heard is what a program was sent, with heads.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) add(r *http.Request) {
	body, _ := io.ReadAll(r.Body) // of an impostor: half a body is heard too
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(&h.text, "%s %s %v %s\n", r.Method, r.URL, r.Header, body)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// withImpostor has another program at INGOT_HOST, which says that it serves the user's store and does all that a server
// does. It answers challenges with forged.
func withImpostor(t *testing.T, forged http.HandlerFunc) *heard {
	t.Helper()
	asServer(t)
	store, err := manifest.Open("")
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
			version := server.VersionJSON{Version: "1", Ingot: "1", Store: identity.StoreID(store)}
			_ = json.NewEncoder(w).Encode(version)
		case "/api/ps":
			fmt.Fprintln(w, `{"models":[]}`)
		default:
			fmt.Fprintln(w, lastLine)
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("INGOT_HOST", s.URL)
	t.Setenv(envAPIKey, secretKey)
	return h
}

func (h *heard) checkDeaf(t *testing.T, what string) {
	t.Helper()
	got := h.String()
	if strings.Contains(got, secretKey) || strings.Contains(got, secretPrompt) || !strings.Contains(got, identity.Path) {
		t.Errorf("%s: the impostor heard:\n%s", what, got)
	}
}

// TestImpostor: another user's program that took the server's port, and knows all that others can know of the store, gets
// neither prompts nor keys: run loads the model itself, others end with an error.
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
		for _, args := range [][]string{{"ps"}, {"stop", secretPrompt}, {"launch", "openclaw", "--model", secretPrompt, "--yes"}} {
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

// withClient has a coding client on the PATH. It fails: launch becomes it, so its exit status would be that of the
// tests.
func withClient(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestRelayingImpostor: a program that asks the user's real server at another port to prove who it is hears nothing either.
func TestRelayingImpostor(t *testing.T) {
	var genuine string
	h := withImpostor(t, func(w http.ResponseWriter, r *http.Request) {
		answer, err := http.Get(genuine + r.URL.RequestURI())
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("the real server answers %s", answer.Status)
		}
		_, _ = io.Copy(w, answer.Body)
	})
	store, err := manifest.Open("")
	if err != nil {
		t.Fatal(err)
	}
	real := httptest.NewServer(server.New(server.Options{Version: "1", Store: store, APIKey: secretKey}))
	t.Cleanup(real.Close)
	genuine = real.URL
	code, _, errs := runMain([]string{"run", "talk", secretPrompt}, "")
	if code != 1 || !strings.Contains(errs, "its proof is wrong") {
		t.Errorf("code %d, %s", code, errs)
	}
	h.checkDeaf(t, "run")
}

// TestNamedServer: a server that the command line names is the user's choice. It gets the key and needs no proof.
func TestNamedServer(t *testing.T) {
	h := withImpostor(t, http.NotFound)
	if code, _, errs := runMain([]string{"ps", "--host", os.Getenv("INGOT_HOST")}, ""); code != 0 {
		t.Errorf("code %d, %s", code, errs)
	}
	if got := h.String(); !strings.Contains(got, "Bearer "+secretKey) || strings.Contains(got, identity.Path) {
		t.Errorf("it heard\n%s", got)
	}
}

// TestExposedSecret: a secret that others could read is no proof any more; server and client go on with a new one.
func TestExposedSecret(t *testing.T) {
	f := asServer(t, lastLine)
	store, err := manifest.Open("")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(store.Root(), "server-secret")
	if err := os.WriteFile(path, []byte(strings.Repeat("k", manifest.SecretSize)), 0o644); err != nil {
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
