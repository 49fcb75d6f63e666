package limits

// Limits of proving who a server is, and of API keys.
const (
	// ProofAnswer bounds a server's answer to a challenge, with its header.
	ProofAnswer = 16 << 10
	// ProofTime bounds the seconds that a server has to answer a challenge.
	ProofTime = 10
	// APIKey bounds an API key that is read from a file.
	APIKey = 4 << 10
	// APIKeys bounds the API keys of a server.
	APIKeys = 1000
)

func init() {
	register(
		Limit{"ProofAnswer", "answer of a server to a challenge", ProofAnswer, Bytes, "server/identity.TestLongAnswer"},
		Limit{"ProofTime", "time that a server has to answer a challenge", ProofTime, Seconds,
			"server/identity.TestSilentServer"},
		Limit{"APIKey", "API key in a file", APIKey, Bytes, "cmd.TestKeyFile"},
		Limit{"APIKeys", "API keys of a server", APIKeys, Count, "server/keys.TestFile"},
	)
}
