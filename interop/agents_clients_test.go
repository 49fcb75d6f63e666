package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// agentClients are the clients that setup.sh --full installs from npm. Each one gets the permissions that the task
// needs in its own way. What connects to anywhere but the server is turned off.
var agentClients = []agentClient{
	{
		name: "claude", path: "/v1/messages",
		env: []string{"DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_TELEMETRY=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
		run: func(a *agent, model, prompt string, more ...string) string {
			return a.launch("claude", model, append([]string{"-p", prompt, "--output-format", "json",
				"--permission-mode", "acceptEdits", "--allowedTools", "Bash,mcp__notes__search",
				"--strict-mcp-config", "--mcp-config", mcpServers()}, more...)...)
		},
		steps: func(file func(string) string) []step {
			return taskSteps(
				call{"Read", args{"file_path": file("notes.txt")}},
				call{"Edit", args{"file_path": file("notes.txt"), "old_string": "two", "new_string": translated}},
				call{"Write", args{"file_path": file("new.txt"), "content": greeting}},
				call{"Bash", args{"command": count, "description": "Count lines"}},
				call{"mcp__notes__search", search},
			)
		},
		returned: []string{thought},
		real: &realRun{
			// The model goes on calling, so the client has to end after two responses.
			env:  []string{"CLAUDE_CODE_MAX_OUTPUT_TOKENS=150"},
			args: []string{"--tools", "Bash", "--max-turns", "2"},
			call: call{"Bash", args{"command": "ls"}},
			ends: `"terminal_reason":"max_turns"`,
		},
	},
	{
		name: "codex", path: "/v1/responses",
		run: func(a *agent, model, prompt string, more ...string) string {
			options := append([]string{"exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write",
				"-c", "mcp_servers.notes.command=" + strconv.Quote(os.Args[0]),
				"-c", "mcp_servers.notes.args=[" + strconv.Quote(mcpArg) + "]"}, append(codexOffline(), more...)...)
			return a.launch("codex", model, append(options, prompt)...)
		},
		steps: func(func(string) string) []step {
			command := func(text string) call { return call{"exec_command", args{"cmd": text}} }
			return taskSteps(
				command("cat notes.txt"),
				command("sed -i 's/two/"+translated+"/' notes.txt"),
				command("cat > new.txt <<'END'\n"+greeting+"END"),
				command(count),
				call{"mcp__notes__search", search}, // the server's name for a tool of the namespace mcp__notes
			)
		},
		real: &realRun{
			args: []string{"-c", "features.multi_agent=false", "-c", "features.goals=false", "-c", `web_search="disabled"`,
				"-c", "model_instructions_file=short.md"},
			call: call{"exec_command", args{"cmd": "ls"}},
			ends: `"type":"turn.completed"`,
		},
	},
	{
		name: "opencode", path: "/v1/chat/completions",
		env: []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
			"OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_SHARE=1",
			"npm_config_registry=http://127.0.0.1:9", // nobody listens: it installs a package for plugins at each start
			"OPENCODE_CONFIG_CONTENT=" + jsonText(args{"mcp": args{"notes": args{
				"type": "local", "command": []string{os.Args[0], mcpArg}}}})},
		run: func(a *agent, model, prompt string, _ ...string) string {
			return a.launch("opencode", model, "run", prompt)
		},
		steps: func(file func(string) string) []step {
			return taskSteps(
				call{"read", args{"filePath": file("notes.txt")}},
				call{"edit", args{"filePath": file("notes.txt"), "oldString": "two", "newString": translated}},
				call{"write", args{"filePath": file("new.txt"), "content": greeting}},
				call{"bash", args{"command": count, "description": "Count lines"}},
				call{"notes_search", search},
			)
		},
		returned: []string{thought},
	},
	copilot("completions", "/v1/chat/completions", "COPILOT_PROVIDER_TYPE=openai"),
	copilot("responses", "/v1/responses", "COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_WIRE_API=responses"),
	copilot("messages", "/v1/messages", "COPILOT_PROVIDER_TYPE=anthropic"),
	{
		name: "cline", path: "/v1/chat/completions",
		run: func(a *agent, model, prompt string, _ ...string) string {
			data := filepath.Join(a.home, "cline") // such a folder also keeps cline from starting a daemon
			settings := filepath.Join(data, "settings", "global-settings.json")
			a.more = append(a.more, "CLINE_GLOBAL_SETTINGS_PATH="+settings)
			writeFile(a.t, settings, jsonText(args{"telemetryOptOut": true, "autoUpdateEnabled": false}))
			a.do("cline", "auth", "--data-dir", data, "-p", "openai", "-k", "none", "-m", model, "-b", a.server.url+"/v1")
			writeFile(a.t, filepath.Join(data, "settings", "cline_mcp_settings.json"), mcpServers())
			return a.do("cline", "--data-dir", data, "--json", prompt)
		},
		steps: func(file func(string) string) []step {
			return taskSteps(
				call{"read_files", args{"files": []args{{"path": file("notes.txt")}}}},
				call{"editor", args{"path": file("notes.txt"), "old_text": "two", "new_text": translated}},
				call{"editor", args{"path": file("new.txt"), "new_text": greeting}},
				call{"run_commands", args{"commands": []string{count}}},
				call{"notes__search", search},
			)
		},
		others: []string{"data.cline.bot:443"},
	},
}

// copilot is GitHub Copilot's CLI with a provider of one's own, which needs no account.
func copilot(api, path string, env ...string) agentClient {
	return agentClient{
		name: "copilot-" + api, path: path,
		env: append(env, "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false"),
		run: func(a *agent, model, prompt string, _ ...string) string {
			base := a.server.url
			if api != "messages" {
				base += "/v1"
			}
			a.more = append(a.more, "COPILOT_PROVIDER_BASE_URL="+base, "COPILOT_MODEL="+model)
			return a.do("copilot", "-p", prompt, "--allow-all-tools", "--additional-mcp-config", mcpServers())
		},
		steps: func(file func(string) string) []step {
			return taskSteps(
				call{"view", args{"path": file("notes.txt")}},
				call{"edit", args{"path": file("notes.txt"), "old_str": "two", "new_str": translated}},
				call{"create", args{"path": file("new.txt"), "file_text": greeting}},
				call{"bash", args{"command": count, "description": "Count lines"}},
				call{"notes-search", search},
			)
		},
	}
}

// codexOffline turns off what connects to anywhere but the server.
func codexOffline() (list []string) {
	for _, o := range []string{"check_for_update_on_startup", "analytics.enabled", "features.plugins", "features.apps"} {
		list = append(list, "-c", o+"=false")
	}
	return list
}

type args = map[string]any

// search are arguments of the MCP server's tool.
var search = args{"query": "greeting", "limit": 3}

// taskSteps is the task's script: two steps with one call, one with three at once, and the end.
func taskSteps(read, edit, create, run, search call) []step {
	return []step{
		{think: thought, text: "I read it.", calls: []call{read}},
		{text: "I change it.", calls: []call{edit}},
		{calls: []call{create, run, search}},
		{think: "That was all.", text: finished},
	}
}

// mcpServers is the configuration of the MCP server in the form that most clients read.
func mcpServers() string {
	return jsonText(args{"mcpServers": args{"notes": args{
		"type": "stdio", "command": os.Args[0], "args": []string{mcpArg}, "tools": []string{"*"}}}})
}

// jsonText encodes a value as models do, without escapes of HTML.
func jsonText(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
