// Package identity proves to a client on this machine that the server which it reached is run by the owner of its store.
//
// A port of this machine belongs to whichever user takes it first, so an address says nothing about who listens there.
// Both ends therefore read the secret of the store, a file that only its owner can read ([manifest.Store.Secret]):
//
//   - The client sends a random nonce to GET /api/prove on a new connection, before anything else.
//   - The server answers with HMAC-SHA256 under the secret, over the nonce, the store's id, and both ends of the
//     connection as the server sees them.
//   - The client computes the same from both ends as it sees them, and uses the connection only if the two are equal.
//
// A program that forwards the challenge to the real server is the client of another connection, so the answer that it
// gets is over other addresses. Only the connection that was proven is trusted: each new one is proven again. A
// connection that an address translation or a proxy changes on its way cannot be proven.
package identity
