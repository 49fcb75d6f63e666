package hub

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/registry/hub/hubtest"
)

// The hub's own Python client reads the fake, and each of the two programs reads the cache that the other one wrote.
// `make clients` installs the client. Without INGOT_TEST_CLIENTS the test is skipped if it is missing.
func TestPythonClient(t *testing.T) {
	python, err := filepath.Abs(filepath.Join("..", "..", ".cache", "clients-venv", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(python, "-c", "import huggingface_hub").Run(); err != nil {
		if os.Getenv("INGOT_TEST_CLIENTS") != "" {
			t.Fatalf("%s: %v: run `make clients`", python, err)
		}
		t.Skip("huggingface_hub is not installed: run `make clients`")
	}
	list := map[string]hubtest.Content{
		"config.json": hubtest.Bytes(`{"model_type": "llama"}`), "model.safetensors": hubtest.Bytes(random(1, 3<<20)),
		"1_Pooling/config.json": hubtest.Bytes("{}"), "name with space #1.txt": hubtest.Bytes("escaped"),
	}
	dir := t.TempDir()
	for name, c := range list {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, c.(hubtest.Bytes), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := start(t)
	h.Token, h.PageSize = "hf_secret", 2
	h.Add("tiny/model", list)
	h.Add("tiny/gated", list).Gate()
	home := t.TempDir()
	run := func(script, home string) {
		t.Helper()
		c := exec.Command(python, filepath.Join("hubtest", script), dir)
		c.Env = append(os.Environ(), "HF_ENDPOINT="+h.URL(), "HF_HOME="+home, "HF_HUB_CACHE="+filepath.Join(home, "hub"),
			"HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_PROGRESS_BARS=1", "HF_HUB_DISABLE_XET=1",
			"TOKEN_OF_TEST="+h.Token)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	run("client.py", home)
	before := len(h.Requests())
	f := open(t, client(h, Options{Cache: filepath.Join(home, "hub"), Offline: true}), "hf.co/tiny/model")
	checkAll(t, f, list)
	if n := len(h.Requests()) - before; n > 0 {
		t.Errorf("%d requests, although the cache has everything", n)
	}
	home = t.TempDir()
	checkAll(t, open(t, client(h, Options{Cache: filepath.Join(home, "hub"), Keep: true}), "hf.co/tiny/model"), list)
	run("offline.py", home)
}
