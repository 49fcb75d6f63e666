package limits

// Limits of conversions.
const (
	// UnsentBlobs bounds the bytes of the blobs that a create which keeps none has on the disk: those that are written or
	// sent. A larger blob is written alone, in pieces that are sent before the next ones are written.
	UnsentBlobs = 160 << 20

	// StreamPiece is the size of those pieces. Three are on the disk at a time: one written, one waiting, one sent.
	StreamPiece = 32 << 20
)

func init() {
	register(
		Limit{"StreamPiece", "a piece of a larger blob, sent before the blob is complete", StreamPiece, Bytes,
			"cmd.TestCreatePushDisk"},
		Limit{"UnsentBlobs", "blobs on the disk that a create with `--no-keep` writes or sends", UnsentBlobs, Bytes,
			"convert/write.TestUnsentBlobs"},
	)
}
