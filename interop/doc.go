// Package interop holds the tests of ingot against other people's registries and clients.
//
// Registries: olareg (all of OCI 1.1, in process; with and without its referrers API) and Debian's docker-registry
// (distribution 2.8, no referrers API). Clients: crane, skopeo, oras-go, cosign, Ollama's pull protocol (played by a peer of
// ours), and transformers' loader for extracted images. The server's page is used in a headless Chromium. setup.sh installs what
// is missing. Every user of a test has a home, a store and a docker configuration of its own; everything listens on loopback, and a
// tool that is not there is a failure.
//
// It is a module of its own so that nobody who builds ingot needs any of this. ingot itself is built from its own module, with
// the versions that are pinned there.
package interop
