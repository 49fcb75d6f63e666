package interop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// agentClient is a coding client.
type agentClient struct {
	name string
	path string // of the requests that generate
	env  []string
	// run runs the client without a terminal and returns what it prints.
	run func(a *agent, model, prompt string, more ...string) string
	// steps is the script of a model that does the task with the client's own tools.
	steps func(file func(name string) string) []step
	// returned is what the last request has of the model's thinking: clients differ in whether they return it.
	returned []string
	others   []string // what it tries to reach besides the server, whatever its settings
	real     *realRun // nil: not run with a real model
}

const (
	task     = "Translate the second line of notes.txt into German, save a greeting in new.txt, and count the lines."
	finished = "All three files are done."
	thought  = "I look at the file before I change it."
	notes    = "one\ntwo\nthree\n"
	changed  = "one\n" + translated + "\nthree\n"
	// translated has what JSON, XML and HTML escape.
	translated = `zwei <"ö">`
	greeting   = "Hello,\n\t\"world\" \\ </parameter> &amp;\n"
	counted    = "3 lines, 22 bytes" // what wc says of changed
)

// count is a command line that writes a file and prints text.
const count = `printf '%d lines, %d bytes\n' $(wc -l < notes.txt) $(wc -c < notes.txt) | tee count.txt`

// TestAgents: coding clients do a task of several tool calls with a scripted model, whose calls read, change and create
// a file, run a command and ask an MCP server. The model writes calls in several formats.
func TestAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("the clients are installed by setup.sh --full")
	}
	u := newUser(t)
	s := u.serve()
	for _, c := range agentClients {
		for _, f := range agentFormats {
			t.Run(c.name+"/"+f.name, func(t *testing.T) {
				a := newAgent(t, u, s)
				a.more = append(a.more, c.env...)
				a.file("notes.txt", notes)
				steps := c.steps(func(name string) string { return filepath.Join(a.scratch, name) })
				model := c.name + "-" + f.name
				a.model(u, model, scripted(t, f, steps, "A title"), f)
				out := c.run(a, model, task)
				if !strings.Contains(out, finished) {
					t.Errorf("the client prints %s", out)
				}
				a.wantFile("notes.txt", changed)
				a.wantFile("new.txt", greeting)
				a.wantFile("count.txt", counted+"\n")
				returned := []string{"three", counted, noteFound}
				if f.thinks {
					returned = append(returned, c.returned...)
				}
				a.wantRequests(c.path, len(steps), returned...)
				a.wantNoOutside(c.others...)
			})
		}
	}
}

// model creates a model in the server's store.
func (a *agent) model(u *user, name, from string, f callFormat) {
	a.t.Helper()
	file := filepath.Join(a.home, "Modelfile")
	writeFile(a.t, file, fmt.Sprintf("FROM %s\nPARSER %s\n", from, f.parser))
	owner := *u
	owner.t = a.t
	owner.ingot("create", name, "-f", file)
}

// wantRequests: every request succeeds, those with tools are as many as the script's steps, so that none was repeated,
// and the last one has what the tools returned.
func (a *agent) wantRequests(path string, steps int, returned ...string) {
	a.t.Helper()
	var withTools []exchange
	for _, e := range a.server.all() {
		if e.status != http.StatusOK {
			a.t.Errorf("%s %s: %d %s", e.method, e.path, e.status, e.responded)
		}
		var body struct{ Tools []json.RawMessage }
		if json.Unmarshal([]byte(e.requested), &body) == nil && len(body.Tools) > 0 {
			withTools = append(withTools, e)
			if !strings.HasPrefix(e.path, path) {
				a.t.Errorf("a request to %s, want only those to %s", e.path, path)
			}
		}
	}
	if len(withTools) != steps {
		a.t.Fatalf("%d requests with tools, want %d\n%s", len(withTools), steps, a.server)
	}
	last := turns(withTools[steps-1].requested)
	for _, part := range returned {
		if !strings.Contains(last, part) {
			a.t.Errorf("the last request lacks %q: %s", part, last)
		}
	}
}

// wantNoOutside: the client tried to reach nothing but the server and what is expected.
func (a *agent) wantNoOutside(expected ...string) {
	a.t.Helper()
	for _, e := range a.outside.all() {
		if !slices.Contains(expected, e.path) {
			a.t.Errorf("the client tried to reach %s", e.path)
		}
	}
}

// turns returns the strings of a request's conversation, one per line.
func turns(request string) string {
	var body struct{ Messages, Input any }
	if json.Unmarshal([]byte(request), &body) != nil {
		return ""
	}
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(body.Messages)
	walk(body.Input)
	return b.String()
}
