// Package remote sends requests to registries, and reads and writes the manifests, referrers and small blobs of their
// repositories.
//
// A [Client] knows each registry's address, authentication and mirrors. A [Repository] sends authorized requests: see
// [Repository.Do]. go-containerregistry parses host names and authentication challenges; the token exchange is
// implemented here.
//
// Contract:
//
//   - Credentials are sent only to the host that they belong to and to the token server that this host names. They
//     appear in no error, warning or redirect. The user's certificates are shown to their own host alone.
//   - No response makes a client connect to an address that is less public than the one that responded.
//   - An operation gives up after [Options.Attempts] consecutive failures, or when its context ends.
package remote
