package cmd_test

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/registry/hub/hubtest"
	"github.com/rogpeppe/go-internal/testscript"
)

// serveHub starts a fake hub with a folder as repository: hub ORG/REPO FOLDER [gated]. Later calls of a script add to
// it. It sets HF_ENDPOINT, HF_HOME, and an INGOT_HUB_TOKEN that the gated ones require.
func serveHub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: hub ORG/REPO FOLDER [gated]")
	}
	h, ok := hubs[ts.Getenv("HF_ENDPOINT")]
	if !ok {
		h = hubtest.New()
		h.Token = "hf_of_the_test"
		hubs[h.URL()] = h
		ts.Defer(h.Close)
		ts.Setenv("HF_ENDPOINT", h.URL())
		ts.Setenv("MODELSCOPE_ENDPOINT", h.URL())
		ts.Setenv("HF_HOME", ts.MkAbs("hf"))
		ts.Setenv("HUB_TOKEN", h.Token)
	}
	r, err := h.AddFolder(args[0], ts.MkAbs(args[1]))
	ts.Check(err)
	if len(args) > 2 {
		r.Gate()
	}
	r.Count(map[string]int64{"BF16": 596_049_920})
}

// hubs are the fakes of scripts, by endpoint. Scripts run one after the other.
var hubs = map[string]*hubtest.Hub{}

// hubEnv returns a command's environment for a fake.
func hubEnv(h *hubtest.Hub, home, token string) []string {
	return []string{
		"HF_ENDPOINT=" + h.URL(), "HF_HOME=" + filepath.Join(home, "hf"), "HF_TOKEN=" + token, "HF_HUB_CACHE=",
		"HF_HUB_DOWNLOAD_TIMEOUT=2",
	}
}

// runHub runs a command and returns its output and its errors. With after, it is killed after that time.
func runHub(
	t *testing.T, h *hubtest.Hub, home, token string, after time.Duration, args ...string,
) (out, errs string, err error) {
	t.Helper()
	c := command(home, args...)
	c.Env = append(c.Env, hubEnv(h, home, token)...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = c.Process.Kill() })
		defer timer.Stop()
	}
	err = c.Wait()
	return stdout.String(), stderr.String(), err
}

// TestKilledHub kills creates from a hub at random moments, while a tenth of the requests fail, and runs them again
// with the same store. The digest is that of the folder. With INGOT_TEST_LONG the test does so 20 times with each
// checkpoint of testdata, with 30 % of the requests failing.
func TestKilledHub(t *testing.T) {
	kills, share := runtest.Pick(1, 20), runtest.Pick(0.1, 0.3)
	fixtures := []string{"models/demo", "models/llama-sharded"}
	if runtest.Long() {
		fixtures = nil
		for _, room := range []string{"models", "sources"} {
			entries, err := os.ReadDir(filepath.Join("..", "testdata", room))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				fixtures = append(fixtures, room+"/"+e.Name())
			}
		}
	}
	var made atomic.Int32
	t.Run("fixtures", func(t *testing.T) {
		for i, fixture := range fixtures {
			t.Run(fixture, func(t *testing.T) {
				t.Parallel()
				if killHub(t, filepath.Join("..", "testdata", filepath.FromSlash(fixture)), uint64(i), kills, share) {
					made.Add(1)
				}
			})
		}
	})
	// The others are pairs of checkpoints, and ones with codes that int4 cannot have; TestHubSoak has them, too.
	if n := int(made.Load()); n < len(fixtures)*3/4 {
		t.Errorf("%d of %d checkpoints were imported", n, len(fixtures))
	}
}

// killHub kills creates of a checkpoint. It reports whether the checkpoint can be imported.
func killHub(t *testing.T, dir string, seed uint64, kills int, share float64) bool {
	h := hubtest.New()
	defer h.Close()
	if _, err := h.AddFolder("tiny/model", dir); err != nil {
		t.Fatal(err)
	}
	c := command(filepath.Join(t.TempDir(), "local"), "create", "m", dir, "-q", "int4", "--quiet")
	want, err := c.Output()
	if err != nil {
		return false
	}
	create := []string{"create", "m", "hf.co/tiny/model", "-q", "int4", "--quiet"}
	h.Set(func(h *hubtest.Hub) { h.Latency = 20 * time.Millisecond })
	begun := time.Now()
	if got, errs, err := runHub(t, h, filepath.Join(t.TempDir(), "whole"), "", 0, create...); err != nil ||
		got != string(want) {
		t.Errorf("%q, want %q: %v\n%s", got, want, err, errs)
		return true
	}
	whole, home := time.Since(begun), filepath.Join(t.TempDir(), "store")
	h.Set(func(h *hubtest.Hub) { h.Faults = hubtest.Faults{Share: share, Seed: seed} })
	var at []time.Duration
	for range kills {
		at = append(at, rand.N(whole))
		_, _, _ = runHub(t, h, home, "", at[len(at)-1], create...)
	}
	if got, errs, err := runHub(t, h, home, "", 0, create...); err != nil || got != string(want) {
		t.Errorf("killed after %s of %s: %q, want %q: %v\n%s", at, whole, got, want, err, errs)
	}
	return true
}

// TestHubSecrets looks for tokens, signatures and queries in everything that runs write: output, errors, the store with
// its records, and the hub's cache.
func TestHubSecrets(t *testing.T) {
	h := hubtest.New()
	defer h.Close()
	h.Token = "hf_secret_of_the_test"
	dir := filepath.Join("..", "testdata", "models", "demo")
	repository, err := h.AddFolder("tiny/gated", dir)
	if err != nil {
		t.Fatal(err)
	}
	repository.Gate()
	home := t.TempDir()
	secrets := append(h.Secrets(), "hf_wrong_secret")
	look := func() {
		t.Helper()
		checkSecretsBelow(t, home, secrets)
	}
	var text strings.Builder
	run := func(token string, fails bool, args ...string) {
		t.Helper()
		out, errs, err := runHub(t, h, home, token, 0, args...)
		if (err != nil) != fails {
			t.Errorf("%v: %v\n%s", args, err, errs)
		}
		text.WriteString(out + errs)
	}
	run(h.Token, false, "create", "m", "hf.co/tiny/gated", "-q", "int4", "--json")
	run(h.Token, false, "show", "m", "--provenance", "--json")
	from, to := newTestRegistry(t.Cleanup).addr+"/team/m:v1", newTestRegistry(t.Cleanup).addr+"/team/m:v1"
	run(h.Token, false, "create", from, "hf.co/tiny/gated", "-q", "int4", "--push", "--no-keep", "--json")
	run(h.Token, false, "cp", from, to, "--json")
	run(h.Token, false, "pull", to) // with its record, which look reads
	run("hf_wrong_secret", true, "create", "m", "hf.co/tiny/gated", "-q", "int8", "--verify-source")
	for _, fault := range []hubtest.Fault{hubtest.Expired, hubtest.Reset, hubtest.Short} {
		h.Set(func(h *hubtest.Hub) { h.Faults = hubtest.Faults{Share: 0.05, Kinds: []hubtest.Fault{fault}} })
		run(h.Token, false, "create", "faults", "hf.co/tiny/gated", "-q", "mxfp8")
	}
	h.Set(func(h *hubtest.Hub) { h.Faults = hubtest.Faults{} })
	run(h.Token, false, "create", "kept", "hf.co/tiny/gated", "--keep-source")
	look() // before the cache goes, so that the next runs need the hub again
	if err := os.RemoveAll(filepath.Join(home, "hf")); err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	repository.Replace("model.safetensors", hubtest.Bytes(model[:len(model)-1]), true)
	run(h.Token, true, "create", "changed", "hf.co/tiny/gated", "-q", "int3")
	h.Close()
	run(h.Token, true, "create", "gone", "hf.co/tiny/gated", "-q", "int3", "--dry-run")
	look()
	checkSecrets(t, "the output", []byte(text.String()), secrets)
}

func checkSecrets(t *testing.T, where string, b []byte, secrets []string) {
	t.Helper()
	for _, s := range secrets {
		if bytes.Contains(b, []byte(s)) {
			t.Errorf("%s contains %q", where, s)
		}
	}
}

// checkSecretsBelow looks into all files of a folder.
func checkSecretsBelow(t *testing.T, dir string, secrets []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		checkSecrets(t, path, b, secrets)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
