package limits

// ControlFrame bounds a message between the ranks of a divided model. The longest ones have the tokens of a prompt.
const ControlFrame = 64 << 20

func init() {
	register(
		Limit{"ControlFrame", "message between the ranks of a model", ControlFrame, Bytes, "runtime/ranks.TestBadFrames"},
	)
}
