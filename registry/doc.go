// Package registry transfers model images between a store and OCI registries, and between registries: push, pull
// and copy.
//
// A [Client] implements the client side of the OCI distribution specification v1.1.1
// (https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md). Package
// remote sends its requests. A transfer survives a dropped connection, an expired token, an upload session that the
// registry dropped, and the end of the process.
//
// Contract:
//
//   - Every blob is verified against its digest before the store shows it, whatever the registry sent.
//   - Nothing is visible before it is complete. A manifest becomes visible after everything that it references.
//   - Credentials are sent only to the host that they belong to and to the token server that this host names. They
//     appear in no error, event or redirect.
//   - An operation gives up after [remote.Options.Attempts] consecutive failures without progress, or when its
//     context ends.
package registry
