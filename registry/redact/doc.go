// Package redact removes secrets and control characters from foreign text before it reaches an error or a terminal.
//
// Its functions are pure. What they return holds no userinfo, query or fragment of a URL, and none of the
// secrets given.
package redact
