// Package registry moves model images between a store and OCI registries: push, pull, credentials, signatures.
//
// A [Client] speaks the distribution specification (v1.1.1). Names, credentials and the token exchange come from
// go-containerregistry; how blobs travel is this package's own, since a transfer here survives whatever ends early: a dropped
// connection, an expired token, a registry that forgets an upload, the program itself.
//
// Contract: what a store shows under a digest was verified against it, whatever the other side sent. Nothing is
// visible before it is whole; a manifest becomes visible after all that it names. Credentials go to the host that they
// are for and to the token server that this host names, and appear in no error, event or redirect. An operation gives up when its
// attempts are used up without a byte having moved in between ([Options.Attempts]), or when its context ends.
package registry
