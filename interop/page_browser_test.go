package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// server is an `ingot serve` process on the installed engine.
type server struct {
	t      *testing.T
	origin string
	pid    int
}

// engine returns the path of the engine, found with the home of the user who runs the tests.
func engine(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(ingot, "engine", "install").Output()
	if err != nil {
		t.Fatalf("the engine: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

func (u *user) serve(args ...string) *server {
	u.t.Helper()
	c := exec.Command(ingot, append([]string{"serve", "--host", "127.0.0.1:0"}, args...)...)
	c.Env = append(u.env(), "INGOT_ENGINE="+engine(u.t))
	pipe, err := c.StderrPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	r := bufio.NewReader(pipe)
	line, err := r.ReadString('\n')
	origin, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		rest, _ := io.ReadAll(r)
		u.t.Fatalf("the server printed %q, %v: %s", line, err, rest)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return &server{u.t, origin, c.Process.Pid}
}

// ps returns the process ID of a loaded model and its number of requests.
func (s *server) ps(model string) (pid, requests int) {
	s.t.Helper()
	response, err := http.Get(s.origin + "/api/ps")
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var list struct {
		Models []struct {
			Name          string
			PID, Requests int
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		s.t.Fatal(err)
	}
	for _, m := range list.Models {
		if m.Name == model+":latest" {
			return m.PID, m.Requests
		}
	}
	s.t.Fatalf("%s is not loaded: %+v", model, list)
	return 0, 0
}

// endlessThinking is a Modelfile whose template starts every thought with the same text, so that the model does not
// stop early.
const endlessThinking = "FROM %s\nTEMPLATE \"\"\"there was a<think>\n\"\"\"\nPARSER qwen3\nPARAMETER num_predict 40\n" +
	"PARAMETER temperature 0\n"

// newChatUser returns a user with three models: "story" tells stories, "muse" thinks up to its token limit, "sight"
// sees pictures.
func newChatUser(t *testing.T) *user {
	t.Helper()
	u := newUser(t)
	u.create("story", "demo")
	u.create("sight", "qwen3_5-vision")
	file := filepath.Join(u.home, "Modelfile")
	if err := os.WriteFile(file, fmt.Appendf(nil, endlessThinking, checkpoint(t, "demo")), 0o644); err != nil {
		t.Fatal(err)
	}
	u.ingot("create", "muse", "-f", file)
	return u
}

const (
	last    = `document.querySelector('#log > .answer:last-child')`
	isDone  = last + `?.getAttribute('aria-busy') === 'false'`
	ofModel = `document.querySelector('#model').value === '%s:latest' &&
		document.querySelector('#message').placeholder.includes('%s')`
)

// chooseModel selects a model with the keyboard and returns to the message.
func (b *browser) chooseModel(name string) {
	b.t.Helper()
	b.tab("the box of models", `e.id === 'model'`, true)
	b.typeText(name[:2])
	b.waitFor(name+" is chosen", fmt.Sprintf(ofModel, name, name))
	b.tab("the message", `e.id === 'message'`)
}

// ask sends a message and waits for the whole answer.
func (b *browser) ask(text string) {
	b.t.Helper()
	before := eval[int](b, `document.querySelectorAll('#log > .answer').length`)
	b.typeText(text)
	b.waitFor("the message can be sent", `!document.querySelector('#send').disabled`) // the model is known
	b.press(kb.Enter)
	b.waitFor("an answer has come", fmt.Sprintf(`document.querySelectorAll('#log > .answer').length > %d && %s`,
		before, isDone))
}
