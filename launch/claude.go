package launch

import "strconv"

// claude is Claude Code, which is set up by its environment (https://code.claude.com/docs/en/env-vars).
var claude = Client{
	Name: "claude", Title: "Claude Code", Home: "https://code.claude.com/docs/en/setup",
	programs: []string{"claude"}, places: []string{".local/bin/claude", ".claude/local/claude"},
	start: func(s Setup) change {
		v := []variable{
			{"ANTHROPIC_BASE_URL", s.URL},
			{"ANTHROPIC_API_KEY", ""}, // one that is not empty would win over the token
			{"ANTHROPIC_AUTH_TOKEN", s.key()},
			{"ANTHROPIC_MODEL", s.Model.Name},
			{"ANTHROPIC_DEFAULT_OPUS_MODEL", s.Model.Name},
			{"ANTHROPIC_DEFAULT_SONNET_MODEL", s.Model.Name},
			{"ANTHROPIC_DEFAULT_HAIKU_MODEL", s.Model.Name},
			{"CLAUDE_CODE_SUBAGENT_MODEL", s.Model.Name},
			{"CLAUDE_CODE_ATTRIBUTION_HEADER", "0"}, // it changes with each request and begins the system prompt, which so would never be in the cache
		}
		if s.Model.Context > 0 {
			v = append(v, variable{"CLAUDE_CODE_AUTO_COMPACT_WINDOW", strconv.Itoa(s.Model.Context)})
		}
		return change{env: v}
	},
}
