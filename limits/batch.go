package limits

// Limits of files of requests that run without anybody waiting for them.
const (
	// BatchLine bounds a line, which is a request.
	BatchLine = 16 << 20
	// BatchID bounds the id that a request has in its file.
	BatchID = 512
)

func init() {
	const test = "server/batches.TestWrongLines"
	register(
		Limit{"BatchLine", "line of a batch", BatchLine, Bytes, test},
		Limit{"BatchID", "id of a request in a batch", BatchID, Bytes, test},
	)
}
