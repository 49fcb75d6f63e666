package limits

// Limits of conversions.
const (
	// UnsentBlobs bounds the bytes of the blobs that a create which keeps none has on the disk: those that are written or
	// sent. A larger blob is written alone.
	UnsentBlobs = 160 << 20
)

func init() {
	register(
		Limit{"UnsentBlobs", "blobs on the disk that a create with `--no-keep` writes or sends, unless one is larger",
			UnsentBlobs, Bytes, "convert/write.TestUnsentBlobs"},
	)
}
