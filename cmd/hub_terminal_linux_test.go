package cmd_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/registry/hub/hubtest"
)

// On a terminal, run, serve and launch ask before they import a model of a hub, and say how large it is.
func TestHubQuestion(t *testing.T) {
	if err := mlx.Available(); err != nil { // they ask nothing if they could not run the model
		runtest.Engine.Need(t, err)
	}
	h := hubtest.New()
	defer h.Close()
	if _, err := h.AddFolder("tiny/model", filepath.Join("..", "testdata", "models", "demo")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	home, bin := filepath.Join(dir, "store"), filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	client := "#!/bin/sh\nprintf 'model %s> ' \"$ANTHROPIC_MODEL\"\n"
	if err := os.WriteFile(filepath.Join(bin, "claude"), []byte(client), 0o755); err != nil {
		t.Fatal(err)
	}
	addr, stop, err := modelServer(home, "")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	env := append(hubEnv(h, home, ""), "HOME="+dir, "XDG_STATE_HOME=", "INGOT_HOST="+addr,
		"PATH="+bin+":"+os.Getenv("PATH"))
	const question = "hf.co/tiny/model is not in the store; import it (3.6 MB)? [y/N] "
	for _, c := range []struct {
		reply, shows string
		status       int
		args         []string
	}{
		{"n\n", "not found", 1, []string{"run", "hf.co/tiny/model", "Once", "--local", "--raw", "--max-tokens", "1"}},
		{"\n", "not found", 1, []string{"serve", "hf.co/tiny/model"}},
		{"n\n", "not found", 1, []string{"launch", "claude", "--model", "hf.co/tiny/model"}},
		{"y\n", "model hf.co/tiny/model:latest> ", 0, []string{"launch", "claude", "--model", "hf.co/tiny/model"}},
	} {
		s := startOnTerminal(t, home, env, c.args...)
		s.expect(t, question)
		s.press(t, c.reply)
		s.expect(t, c.shows)
		s.ends(t, c.status)
	}
	ingot(t, home, "show", "hf.co/tiny/model")
}
