package limits

// Limits of proving who a server is, and of API keys.
const (
	// ProofResponse bounds a server's response to a challenge, with its header.
	ProofResponse = 16 << 10
	// ProofTime bounds the seconds that a server has to respond to a challenge.
	ProofTime = 10
	// APIKey bounds an API key that is read from a file.
	APIKey = 4 << 10
	// APIKeys bounds the API keys of a server.
	APIKeys = 1000
)

func init() {
	register(
		Limit{"ProofResponse", "response of a server to a challenge", ProofResponse, Bytes,
			"server/identity.TestLongResponse"},
		Limit{"ProofTime", "time that a server has to respond to a challenge", ProofTime, Seconds,
			"server/identity.TestSilentServer"},
		Limit{"APIKey", "API key in a file", APIKey, Bytes, "cmd/cli/servers.TestKeyFile"},
		Limit{"APIKeys", "API keys of a server", APIKeys, Count, "server/keys.TestFile"},
	)
}
