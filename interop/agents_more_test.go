package interop

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// agentMore is what coding clients send beyond the task: one run, or several that continue a session.
type agentMore struct {
	name, client string
	env          []string
	steps        func(file func(string) string) []step
	runs         [][]string // arguments
	prints       string     // of the last run
	requested    []string   // what the requests have, in this order
}

const (
	// picture is a PNG file, and document a PDF file with one line of text.
	picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\xdacd\xf8\xcfP\x0f\x00\x03\x86\x01\x80Z4}k\x00\x00\x00\x00IEND\xaeB`\x82"
	document = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n" +
		"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj\n" +
		"4 0 obj<</Length 44>>stream\nBT /F1 12 Tf 20 100 Td (The tide is out) Tj ET\nendstream endobj\n" +
		"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n"
	// titleSchema leaves no choice: tokens that a format forces are none that a script knows.
	titleSchema = `{"type":"object","properties":{"title":{"type":"string","enum":["tides"]}},"required":["title"],` +
		`"additionalProperties":false}`
)

// TestAgentsMore: requests of Claude Code and Codex that the task does not have are answered, too, by a model without
// vision and without levels of thinking.
func TestAgentsMore(t *testing.T) {
	if testing.Short() {
		t.Skip("the clients are installed by setup.sh --full")
	}
	u := newUser(t)
	s := u.serve()
	env := map[string][]string{}
	for _, c := range agentClients {
		env[c.name] = c.env
	}
	for i, c := range agentMores {
		t.Run(c.client+"/"+c.name, func(t *testing.T) {
			a := newAgent(t, u, s)
			a.more = append(append(a.more, env[c.client]...), c.env...)
			for name, text := range map[string]string{"notes.txt": notes, "picture.png": picture, "document.pdf": document,
				"schema.json": titleSchema} {
				a.file(name, text)
			}
			model, out := fmt.Sprintf("more-%d", i), ""
			steps := c.steps(func(name string) string { return filepath.Join(a.scratch, name) })
			a.model(u, model, scripted(t, strictCalls, steps, "A title"), strictCalls)
			for _, args := range c.runs {
				out = a.launch(c.client, model, args...)
			}
			if !strings.Contains(out, c.prints) {
				t.Errorf("the client prints %s, want %s", out, c.prints)
			}
			requested := ""
			for _, e := range a.server.all() {
				if e.status != http.StatusOK {
					t.Errorf("%s %s: %d %s", e.method, e.path, e.status, e.responded)
				}
				requested += e.requested
			}
			for _, part := range c.requested {
				_, rest, ok := strings.Cut(requested, part)
				if !ok {
					t.Errorf("the requests lack %s, or have it too early", part)
				}
				requested = rest
			}
			a.wantNoOutside()
		})
	}
}

var agentMores = []agentMore{
	{
		name: "files, effort and a second turn", client: "claude",
		steps: calling(func(file func(string) string) []call {
			return []call{{"Read", args{"file_path": file("picture.png")}}, {"Read", args{"file_path": file("document.pdf")}}}
		}),
		runs: [][]string{
			claudeArgs("What do they show?", "--effort", "max"),
			claudeArgs("And now?", "--continue", "--effort", "low"),
		},
		prints:    finished,
		requested: []string{`"effort":"max"`, `"type":"image"`, `"type":"document"`, `"effort":"low"`},
	},
	{
		name: "search for tools", client: "claude", env: []string{"ENABLE_TOOL_SEARCH=true"},
		steps: calling(
			func(func(string) string) []call {
				return []call{{"ToolSearch", args{"query": "select:mcp__notes__search", "max_results": 3}}}
			},
			func(func(string) string) []call { return []call{{"mcp__notes__search", search}} },
		),
		runs: [][]string{claudeArgs("Search.", "--allowedTools", "mcp__notes__search", "--strict-mcp-config",
			"--mcp-config", mcpServers())},
		prints: finished, requested: []string{`"type":"tool_reference"`, noteFound},
	},
	{
		name: "wrong calls", client: "claude",
		steps: calling(func(file func(string) string) []call {
			return []call{{"NoSuchTool", args{"a": 1}}, {"Edit", args{"file_path": file("notes.txt")}}, {"TaskList", args{}}}
		}),
		runs:   [][]string{claudeArgs("Edit.")},
		prints: finished, requested: []string{`"is_error":true`},
	},
	{
		name: "structured output", client: "claude",
		steps: calling(func(func(string) string) []call { return []call{{"StructuredOutput", args{"title": "tides"}}} }),
		runs:  [][]string{claudeArgs("A title.", "--json-schema", titleSchema)}, prints: `{"title":"tides"}`,
	},
	{
		name: "a picture, effort and a second turn", client: "codex",
		steps: calling(func(file func(string) string) []call {
			return []call{{"view_image", args{"path": file("picture.png")}}, {"exec_command", args{"cmd": "cat notes.txt"}}}
		}),
		runs: [][]string{
			codexArgs("What does it show?", "-c", "model_reasoning_effort=xhigh"),
			append([]string{"exec", "resume", "--last", "--json", "--skip-git-repo-check", "-c", "model_reasoning_effort=none",
				"And now?"}, codexOffline()...),
		},
		prints:    finished,
		requested: []string{`"effort":"xhigh"`, `"type":"input_image"`, "And now?", `"effort":"none"`},
	},
	{
		name: "wrong calls", client: "codex",
		steps: calling(func(func(string) string) []call {
			return []call{{"no_such_tool", args{}}, {"web_search", args{"query": "x"}}, {"view_image", args{"path": "none.png"}}}
		}),
		runs:   [][]string{codexArgs("Search.")},
		prints: finished, requested: []string{"unsupported call: no_such_tool"},
	},
	{
		name: "structured output", client: "codex",
		steps: func(func(string) string) []step { return []step{{text: `{"title": "tides"}`}} },
		runs:  [][]string{codexArgs("A title.", "--output-schema", "schema.json")}, prints: `{\"title\": \"tides\"}`,
		requested: []string{`"type":"json_schema"`},
	},
}

// calling is a script with calls in each step, and an end.
func calling(each ...func(file func(string) string) []call) func(func(string) string) []step {
	return func(file func(string) string) (steps []step) {
		for _, calls := range each {
			steps = append(steps, step{calls: calls(file)})
		}
		return append(steps, step{text: finished})
	}
}

func claudeArgs(prompt string, more ...string) []string {
	return append([]string{"-p", prompt, "--output-format", "json"}, more...)
}

func codexArgs(prompt string, more ...string) []string {
	return append(append([]string{"exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only"},
		append(codexOffline(), more...)...), prompt)
}
