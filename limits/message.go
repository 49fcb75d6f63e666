package limits

// Message bounds an error in an answer of the API and a line on a terminal, in bytes. Whoever quotes text from outside
// shortens it; this is the last line of defence.
const Message = 4 << 10

func init() {
	register(
		Limit{"Message", "an error in an answer of the API, and a line that a command prints", Message, Bytes,
			"server/wire.TestLongErrors"},
	)
}
