// Package sigstore signs the digest of a manifest and verifies such signatures, with a key and without a network.
//
// A signature is a Sigstore bundle v0.3 (JSON) around a DSSE envelope, whose payload is an in-toto Statement v1 with the
// digest as its only subject and the predicate type that cosign v3 uses for signatures of images. cosign verifies what
// [PrivateKey.Sign] makes, and [PublicKey.Verify] verifies what cosign signs with a key. Keys are ECDSA P-256 or
// Ed25519, in the PEM forms that openssl and cosign write. The subject's annotation docker-reference, where there is one,
// names the reference that the manifest was signed under.
//
// Contract: Verify succeeds only when the key itself signed a statement about exactly this digest. It looks at nothing that
// the signature does not cover to decide that; transparency log entries, timestamps and certificates are not asked. Bundles come
// from strangers: their size is bounded, and what is wrong with one is an error that names it. The same key, digest and
// reference give the same bundle, so signing again adds nothing.
package sigstore
