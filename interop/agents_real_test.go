package interop

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// realRun is how a client runs with a model that is too small to be trusted with a task.
type realRun struct {
	env, args []string // besides those of other runs
	call      call     // an example of a call that runs a command
	ends      string   // what the client prints at the end, if it ends as it should
}

// TestAgentsReal: Claude Code and Codex use a real model, Qwen2.5-Coder 0.5B. It is asked to run one command.
// Whether it then says something sensible is not checked, only that each request succeeds, that the client runs the
// command which the model calls for, that the output is sent to the model, and that the client ends without an error
// of the API.
//
// This model writes calls as JSON without tags, which the parser of Llama 3 reads, if the prompt has an example of one.
// The clients offer few tools, since a processor takes minutes for their whole prompts.
func TestAgentsReal(t *testing.T) {
	if testing.Short() {
		t.Skip("the clients are installed by setup.sh --full")
	}
	file := fetchReal(t, "qwen2.5-coder-0.5b")
	u := newUser(t)
	modelfile := filepath.Join(u.home, "Modelfile")
	writeFile(t, modelfile, "FROM "+file+"\nPARSER llama3\nPARAMETER temperature 0\n")
	u.ingot("create", "coder", "-f", modelfile)
	s := u.serve()
	for _, c := range agentClients {
		if c.real == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(t, u, s)
			a.anyStatus = true // clients that reach a limit of their own exit with 1
			a.more = append(append(a.more, c.env...), c.real.env...)
			a.file("notes.txt", notes)
			a.file("short.md", "You are a coding agent. Use a tool once, then say what it printed.\n")
			out := c.run(a, "coder", fmt.Sprintf("Run the command \"wc -l notes.txt\" with %s. "+
				"Answer with one call, like this:\n%s",
				c.real.call.name, strings.TrimSpace(hermesCalls.write(c.real.call))), c.real.args...)
			if !strings.Contains(out, c.real.ends) || strings.Contains(out, "API Error") {
				t.Errorf("the client prints %s", out)
			}
			last := ""
			for _, e := range a.server.all() {
				if e.status != http.StatusOK {
					t.Errorf("%s %s: %d %s", e.method, e.path, e.status, e.responded)
				}
				if strings.HasPrefix(e.path, c.path) {
					last = turns(e.requested)
				}
			}
			if !strings.Contains(last, "3 notes.txt") {
				t.Errorf("the last request lacks the command's output: %s", last)
			}
			a.wantNoOutside(c.others...)
		})
	}
}
