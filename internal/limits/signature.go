package limits

// Limits of signatures.
const (
	// Signatures bounds the signatures of a manifest that are read to find one that verifies: whoever may push to a
	// repository can add any number, and each costs two requests.
	Signatures = 256
)

func init() {
	register(
		Limit{"Signatures", "signatures of a model that are tried", Signatures, Count, "registry/attest.TestSignatureLimit"},
	)
}
