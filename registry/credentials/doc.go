// Package credentials reads users' credentials and certificates for registries, and stores credentials, where docker
// and podman do.
//
// Contract:
//
//   - Sources are searched in the order of [Keychain]. One that cannot be read hides no other.
//   - Credentials are returned for their own host and, if their key has a path, for repositories below it only.
//   - Credential helpers run one at a time and are asked for a host. Errors quote no secret.
//   - Storing preserves everything else in a file, whose new content is visible at once and only to its owner.
package credentials
