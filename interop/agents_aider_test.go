package interop

import (
	"net/http"
	"path/filepath"
	"testing"
)

// TestAider: aider changes a file with an edit that the model writes as text, over OpenAI's API and over the Ollama
// API.
func TestAider(t *testing.T) {
	if testing.Short() {
		t.Skip("aider is installed by setup.sh --full")
	}
	u := newUser(t)
	s := u.serve()
	edit := "I change the second line.\n\nnotes.txt\n```\n<<<<<<< SEARCH\ntwo\n=======\n" + translated +
		"\n>>>>>>> REPLACE\n```\n"
	from := scripted(t, hermesCalls, nil, edit)
	for _, c := range []struct{ prefix, path string }{
		{"openai/", "/v1/chat/completions"}, {"ollama_chat/", "/api/chat"},
	} {
		t.Run(c.prefix, func(t *testing.T) {
			a := newAgent(t, u, s)
			a.model(u, "edit", from, hermesCalls)
			a.file("notes.txt", notes)
			a.more = append(a.more, "OPENAI_API_BASE="+a.server.url+"/v1", "OPENAI_API_KEY=none",
				"OLLAMA_API_BASE="+a.server.url, "LITELLM_LOCAL_MODEL_COST_MAP=True")
			a.do(tool(t, filepath.Join("agents", "aider", "bin", "aider")), "--model", c.prefix+"edit", "--message", task,
				"--edit-format", "diff", "--yes-always", "--no-git", "--analytics-disable", "--no-check-update",
				"--no-show-release-notes", "--no-show-model-warnings", "--no-detect-urls", "--map-tokens", "0", "notes.txt")
			a.wantFile("notes.txt", changed)
			generated := 0
			for _, e := range a.server.all() {
				if e.status != http.StatusOK {
					t.Errorf("%s %s: %d %s", e.method, e.path, e.status, e.responded)
				}
				if e.path == c.path {
					generated++
				}
			}
			if generated != 1 {
				t.Errorf("%d requests to %s, want 1\n%s", generated, c.path, a.server)
			}
			// aider looks for prices of unknown models.
			a.wantNoOutside("raw.githubusercontent.com:443")
		})
	}
}
