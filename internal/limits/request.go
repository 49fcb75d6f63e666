package limits

// Limits of a request to the server.
const (
	// RequestHeader bounds a request's header.
	RequestHeader = 64 << 10
	// Connections bounds the open connections of a server. One more closes another one that waits.
	Connections = 4096
	// ConnectionsPerAddress bounds those of an address that have not presented a key.
	ConnectionsPerAddress = 2048
	// ConnectionsReserve is how many connections have no request without a key. Half of them have none at all.
	ConnectionsReserve = 128
	// PromptLogProbs bounds the log-probabilities of prompts in a response, with those of the most likely tokens.
	PromptLogProbs = 1 << 20
	// RequestNesting bounds the values in values of a request's JSON.
	RequestNesting = 10000
	// BodyCodings bounds the content codings of a request's body, such as gzip.
	BodyCodings = 2
	// CertificateFile bounds a file with a TLS certificate or its key.
	CertificateFile = 1 << 20
	// Stops bounds the stop texts of a request and of an image, StopText each of them: every piece of a response is
	// searched for all.
	Stops    = 64
	StopText = 4096
	// Message bounds an error in an answer of the API and a line on a terminal, in bytes. Whoever quotes text from outside
	// shortens it; this is the last line of defence.
	Message = 4 << 10
	// Streams bounds the requests of a connection with HTTP/2 at a time.
	Streams = 100
	// BodyWindow bounds the window of a body compressed with zstd, as RFC 9659 does for HTTP.
	BodyWindow = 8 << 20
	// UntakenEvents bounds the events of a response that its client is too slow to take.
	UntakenEvents = 16 << 20
	// RequestLists bounds the objects and arrays of a request: messages, their parts, items, tools.
	RequestLists = 1 << 18
)

func init() {
	register(
		Limit{"RequestHeader", "header of a request", RequestHeader, Bytes, "server.TestBadHeads"},
		Limit{"Connections", "open connections of a server", Connections, Count, "server.TestManyConnections"},
		Limit{"ConnectionsPerAddress", "connections of one address that have not presented a key", ConnectionsPerAddress,
			Count, "server.TestConnectionsPerAddress"},
		Limit{"ConnectionsReserve", "connections kept free for health checks and, half of them, for clients with a key",
			ConnectionsReserve, Count, "server.TestConnectionsReserve"},
		Limit{"PromptLogProbs", "logprobs of the prompts of a request", PromptLogProbs, Count,
			"server/openai.TestEchoLogProbs"},
		Limit{"BodyCodings", "content codings of a request's body", BodyCodings, Count, "server.TestCompressedBodies"},
		Limit{"BodyWindow", "window of a body compressed with zstd", BodyWindow, Bytes, "server.TestCompressedBodies"},
		Limit{"CertificateFile", "file with a TLS certificate or its key", CertificateFile, Bytes,
			"server/certs.TestFaults"},
		Limit{"Streams", "requests of a connection with HTTP/2 at a time", Streams, Count, "server.TestStreams"},
		Limit{"UntakenEvents", "events of a response that its client is too slow to take", UntakenEvents, Bytes,
			"runtime/runner.TestUntaken"},
		Limit{"RequestLists", "objects and arrays of a request", RequestLists, Count, "server.TestLargeBodiesAtOnce"},
		Limit{"Stops", "stop texts of a request, and of an image", Stops, Count, "convert.TestParametersAgree"},
		Limit{"StopText", "a stop text", StopText, Bytes, "convert.TestParametersAgree"},
		Limit{"Message", "an error in an answer of the API, and a line that a command prints", Message, Bytes,
			"server/wire.TestLongErrors"},
		Limit{"RequestNesting", "values in values of a request", RequestNesting, Levels,
			"internal/limits/jsonfit.TestNesting"},
	)
}
