package limits

// Limits of what a hub answers.
const (
	// HubDocument bounds an answer of a hub's API, and a small file of a repository.
	HubDocument = 64 << 20
	// HubFiles bounds the files of a repository.
	HubFiles = 100_000
	// HubRedirects bounds the redirects of one request.
	HubRedirects = 5
	// HubName bounds the name of a repository with its revision and file, without the hub.
	HubName = 512
	// HubToken bounds a token that is read from a file.
	HubToken = 4 << 10
	// VerifiedFiles bounds the records of files of a hub's cache whose digests were computed.
	VerifiedFiles = 4096
)

func init() {
	const test = "registry/hub.TestLimits"
	register(
		Limit{"HubDocument", "answer of a hub's API, and a repository's file that is not weights", HubDocument, Bytes, test},
		Limit{"HubFiles", "files of a hub's repository", HubFiles, Count, test},
		Limit{"HubRedirects", "redirects of a request to a hub", HubRedirects, Count, test},
		Limit{"HubName", "name of a hub's repository", HubName, Bytes, test},
		Limit{"HubToken", "token of a hub in a file", HubToken, Bytes, test},
		Limit{"VerifiedFiles", "verified files of a hub's cache in the user's cache", VerifiedFiles, Count,
			"manifest/verified.TestBound"},
	)
}
