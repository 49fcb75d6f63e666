// Package sigstore signs the digest of a manifest and verifies such signatures, with a key and without network access.
//
// A signature is a Sigstore bundle v0.3 (JSON) around a DSSE envelope. Its payload is an in-toto Statement v1 with the
// digest as the only subject, and the predicate type that cosign v3 uses for image signatures. cosign verifies what
// [PrivateKey.Sign] creates, and [PublicKey.Verify] verifies what cosign signs with a key. Keys are ECDSA P-256 or
// Ed25519, in the PEM forms that openssl and cosign write. The subject's annotation docker-reference, if present, is
// the reference that the manifest was signed under. Other statements about a manifest, attestations, have another
// predicate type and are signed in the same form, as `cosign attest` writes them.
//
// Contract: Verify succeeds only if the key itself signed a statement about exactly this digest. The decision uses only
// what the signature covers; transparency log entries, timestamps and certificates are ignored. Bundles are untrusted
// input: their size is limited, and errors say what is wrong. Signing is deterministic: the same key, digest and
// reference give the same bundle, so signing again adds nothing.
package sigstore
