// Package attest makes, finds and checks signatures and attestations: referrers of an image that hold a statement about
// its manifest.
//
// Contract:
//
//   - What is found in a registry is verified as what a store has: the digests of all content, the statement's subject,
//     and the signature if a key is asked for.
//   - At most limits.Signatures are read. One that cannot be used does not hide another.
//   - Nothing is stored or pushed except by functions that say so.
package attest
