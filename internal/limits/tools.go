package limits

// Limits of the tools that a request offers.
const (
	// Tools bounds their number, and the names of a choice among them.
	Tools = 512
	// ToolsSize bounds their JSON, as jinja.Size measures it.
	ToolsSize = 4 << 20
	// ToolPatterns bounds those with a regular expression for their input, which is compiled to see what can be enforced.
	ToolPatterns = 32
	// ToolNesting bounds values in values of one tool.
	ToolNesting = 128
)

func init() {
	register(
		Limit{"Tools", "tools of a request", Tools, Count, "chat.TestToolLimits"},
		Limit{"ToolsSize", "values of all tools of a request together", ToolsSize, Bytes, "chat.TestToolLimits"},
		Limit{"ToolPatterns", "tools with a regular expression for their input", ToolPatterns, Count,
			"server/openai/tools.TestPatterns"},
		Limit{"ToolNesting", "values in values of a tool", ToolNesting, Levels, "chat.TestToolLimits"},
	)
}
