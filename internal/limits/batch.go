package limits

// Limits of files of requests that run without anybody waiting for them.
const (
	// BatchLine bounds a line, which is a request.
	BatchLine = 16 << 20
	// BatchID bounds the id that a request has in its file.
	BatchID = 512
	// BatchFile bounds a file of requests, and BatchSpace all files of a key, with those of results.
	BatchFile  = 256 << 20
	BatchSpace = 4 << 30
	// BatchOutput bounds a file of results.
	BatchOutput = 8 << 30
	// BatchAhead bounds the results that wait for the one before them.
	BatchAhead = 64 << 20
	// BatchFiles bounds the files of a key.
	BatchFiles = 1000
	// BatchRequests bounds the requests of a batch.
	BatchRequests = 50_000
	// Batches bounds the batches of a key that a server remembers, and BatchesWaiting those that are not finished.
	Batches        = 1000
	BatchesWaiting = 100
	// BatchMetadata bounds the keys of a batch's metadata, and BatchRecord its description.
	BatchMetadata = 16
	BatchRecord   = 128 << 10
)

func init() {
	const (
		test  = "server/batches.TestWrongLines"
		files = "server/offline.TestFileLimits"
		many  = "server/offline.TestBatchLimits"
	)
	register(
		Limit{"BatchLine", "line of a batch", BatchLine, Bytes, test},
		Limit{"BatchID", "id of a request in a batch", BatchID, Bytes, test},
		Limit{"BatchFile", "file of requests", BatchFile, Bytes, files},
		Limit{"BatchSpace", "files of requests and results of a key", BatchSpace, Bytes, files},
		Limit{"BatchOutput", "file of results", BatchOutput, Bytes, files},
		Limit{"BatchAhead", "results of a batch that wait to be written", BatchAhead, Bytes,
			"server/batches.TestResultsAhead"},
		Limit{"BatchFiles", "files of a key", BatchFiles, Count, files},
		Limit{"BatchRequests", "requests of a batch", BatchRequests, Count, many},
		Limit{"Batches", "batches of a key that are remembered", Batches, Count, many},
		Limit{"BatchesWaiting", "batches of a key that are not finished", BatchesWaiting, Count, many},
		Limit{"BatchMetadata", "keys of a batch's metadata", BatchMetadata, Count, "server/offline.TestBatchRefused"},
		Limit{"BatchRecord", "description of a batch", BatchRecord, Bytes, "server/offline.TestBatchRefused"},
	)
}
