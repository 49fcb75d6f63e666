package limits

// Limits of files that clients of the server upload.
const (
	// UploadsAtOnce bounds the files that are uploaded to a server at a time; a request beyond it gets status 503.
	UploadsAtOnce = 64
	// UploadStep is how many bytes of a file have to come within the time for a request's body.
	UploadStep = 1 << 20
	// UploadFreeSpace is what uploads leave free on the store's disk.
	UploadFreeSpace = 256 << 20
	// UploadSpaceStep is how far a file of unknown size grows between two looks at the disk. The files that all of a
	// server's clients upload at once grow by no more than UploadFreeSpace between two looks of another process.
	UploadSpaceStep = 4 << 20
)

func init() {
	register(
		Limit{"UploadsAtOnce", "files that are uploaded at a time", UploadsAtOnce, Count, "server/ollama.TestUploadsAtOnce"},
		Limit{"UploadStep", "least progress of an upload in the time for a body", UploadStep, Bytes,
			"server/ollama.TestSlowBlobs"},
		Limit{"UploadFreeSpace", "disk space that uploads leave free", UploadFreeSpace, Bytes,
			"server/ollama.TestUploadOnFullDisk"},
		Limit{"UploadSpaceStep", "growth of an upload between two looks at the disk", UploadSpaceStep, Bytes,
			"manifest/store/ingest.TestUploadSpaceStep"},
	)
}
