// Package identity lets a client verify that the server it connected to serves the client's store and is run by its
// owner.
//
// Any user of a machine can listen on a free port, so an address does not identify a server. Client and server
// therefore share the secret of the store, a file that only its owner can read ([store.Store.Secret]):
//
//   - The client sends a random nonce to GET /api/prove on a new connection, before any other request.
//   - The server responds with HMAC-SHA256, keyed with the secret, over the nonce, the store's id, and the addresses of
//     both ends of the connection.
//   - The client computes the same from the addresses that it sees, and uses the connection only if the two are equal.
//
// A program that relays the challenge to the real server does so over another connection, with other addresses, so the
// response does not match. The proof holds for one connection; each new connection is verified again. Connections
// through address translation or a proxy cannot be verified. With TLS, all this happens within it.
package identity
