package limits

// Limits of the memory that a server spends on making prompts.
const (
	// PromptMemory bounds the memory of all prompts that a server makes at a time: template renders and encoders.
	PromptMemory = 512 << 20
	// PromptQueue bounds the prompts that wait for memory; PromptWait bounds their wait, in seconds.
	PromptQueue = 256
	PromptWait  = 10
	// ClientShare bounds what the requests of a client hold, as a multiple of the memory that is left. ClientIdle is how
	// many seconds a client may neither send nor read while others wait for what it holds.
	ClientShare = 3
	ClientIdle  = 5
	// PromptText bounds a prompt's text, before it is encoded and in the input of a template.
	PromptText = 8 << 20
	// RenderMemory and RenderOutput bound one render beyond RenderMemoryPerByte and RenderOutputPerByte of its input.
	RenderMemory        = 4 << 20
	RenderMemoryPerByte = 16
	RenderOutput        = 1 << 20
	RenderOutputPerByte = 4
)

// Costs of prompts in memory: estimates, not limits, and therefore typed.
const (
	// EncodePerByte is what a tokenizer takes for each byte of a text that is one long word, which is the worst case.
	EncodePerByte int64 = 96
)

func init() {
	const (
		budget = "server.TestPromptMemoryIsShared"
		queue  = "server/budget.TestQueue"
		render = "prompt.TestRenderLimits"
	)
	register(
		Limit{"PromptMemory", "memory of all prompts that a server makes at a time", PromptMemory, Bytes, budget},
		Limit{"PromptQueue", "prompts that wait for that memory", PromptQueue, Count, queue},
		Limit{"PromptWait", "a prompt's wait for that memory", PromptWait, Seconds, queue},
		Limit{"PromptText", "text of a prompt", PromptText, Bytes, "prompt.TestEncodeLimit"},
		Limit{"ClientShare", "times the memory that is left that the requests of a client hold", ClientShare, Count,
			"server/budget.TestShare"},
		Limit{"ClientIdle", "time without progress of a client that holds memory for which others wait", ClientIdle,
			Seconds, "server/budget.TestIdleClients"},
		Limit{"RenderMemory", "memory of one render beyond that", RenderMemory, Bytes, render},
		Limit{"RenderMemoryPerByte", "memory that one render takes for each byte of its input", RenderMemoryPerByte, Bytes,
			render},
		Limit{"RenderOutput", "text of one render beyond that", RenderOutput, Bytes, render},
		Limit{"RenderOutputPerByte", "text that one render gives for each byte of its input", RenderOutputPerByte, Bytes,
			render},
	)
}
