package launch

import "strconv"

// claudeTimeoutMs is how long Claude Code waits for the next event of a stream, and for a response that is not
// streamed. Its own limits are 5 and 10 minutes. It does not count pings as events, and a processor may take longer
// than that to evaluate its prompt.
const claudeTimeoutMs = "3600000"

// claude is Claude Code, configured by environment variables (https://code.claude.com/docs/en/env-vars).
var claude = Client{
	Name: "claude", Title: "Claude Code", Home: "https://code.claude.com/docs/en/setup",
	programs: []string{"claude"}, places: []string{".local/bin/claude", ".claude/local/claude"},
	start: func(s Setup) change {
		v := []variable{
			{"ANTHROPIC_BASE_URL", s.URL},
			{"ANTHROPIC_API_KEY", ""}, // a non-empty key would take precedence over the token
			{"ANTHROPIC_AUTH_TOKEN", s.key()},
			{"ANTHROPIC_MODEL", s.Model.Name},
			{"ANTHROPIC_DEFAULT_OPUS_MODEL", s.Model.Name},
			{"ANTHROPIC_DEFAULT_SONNET_MODEL", s.Model.Name},
			{"ANTHROPIC_DEFAULT_HAIKU_MODEL", s.Model.Name},
			{"CLAUDE_CODE_SUBAGENT_MODEL", s.Model.Name},
			// The header changes with each request and starts the system prompt: no prompt would hit the prefix cache.
			{"CLAUDE_CODE_ATTRIBUTION_HEADER", "0"},
		}
		if s.Model.Context > 0 {
			v = append(v, variable{"CLAUDE_CODE_AUTO_COMPACT_WINDOW", strconv.Itoa(s.Model.Context)})
		}
		for _, name := range []string{"CLAUDE_STREAM_IDLE_TIMEOUT_MS", "API_TIMEOUT_MS"} {
			if env(s.Env, name) == "" {
				v = append(v, variable{name, claudeTimeoutMs})
			}
		}
		return change{env: v}
	},
}
