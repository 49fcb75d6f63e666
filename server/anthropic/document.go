package anthropic

// messageEventJSON has the members of all event types of /v1/messages.
type messageEventJSON struct {
	Type    string         `json:"type"`
	Index   *int           `json:"index,omitempty"`
	Message *messageJSON   `json:"message,omitempty"`
	Block   *blockJSON     `json:"content_block,omitempty"`
	Delta   *anyDeltaJSON  `json:"delta,omitempty"`
	Usage   *messagesUsage `json:"usage,omitempty"`
}

// anyDeltaJSON is an increment of a block, or how the message ended.
type anyDeltaJSON struct {
	Type         string  `json:"type,omitempty"`
	Text         *string `json:"text,omitempty"`
	Thinking     *string `json:"thinking,omitempty"`
	Signature    *string `json:"signature,omitempty"`
	Partial      *string `json:"partial_json,omitempty"`
	StopReason   *string `json:"stop_reason,omitempty"`
	StopSequence *string `json:"stop_sequence,omitempty"`
}

// inputTokensJSON is the response of /v1/messages/count_tokens.
type inputTokensJSON struct {
	Tokens int `json:"input_tokens"`
}
