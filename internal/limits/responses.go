package limits

// Limits of the responses that a server stores in memory.
const (
	// StoredResponses bounds their number.
	StoredResponses = 1024
	// StoredSize bounds their texts.
	StoredSize = 64 << 20
	// BackgroundResponses bounds those that are generated after their request has ended.
	BackgroundResponses = 64
)

func init() {
	register(
		Limit{"StoredResponses", "responses that a server stores", StoredResponses, Count, "server/openai/stored.TestBounds"},
		Limit{"StoredSize", "responses that a server stores together", StoredSize, Bytes, "server/openai/stored.TestBounds"},
		Limit{"BackgroundResponses", "responses that a server generates in the background", BackgroundResponses, Count,
			"server/openai.TestBackgroundLimit"},
	)
}
