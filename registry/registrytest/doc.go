// Package registrytest is a registry in memory for tests, with the fixtures that tests of registries share.
//
// A [Peer] follows the distribution specification strictly, except for what a test's rules change: see [Peer.On].
// Helpers take a [testing.TB], fail it, and stop what they started when it ends.
package registrytest
