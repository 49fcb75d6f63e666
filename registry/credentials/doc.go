// Package credentials reads and stores users' credentials for registries where docker and podman do.
//
// Credential helpers run one at a time. Errors quote no secret. Storing preserves everything else in docker's
// config.json, whose new content is visible at once and only to its owner.
package credentials
