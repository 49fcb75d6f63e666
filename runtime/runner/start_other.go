//go:build !unix && !windows

package runner

import "github.com/ingotml/ingot/child"

// startTied starts the child. When this process ends, the child notices by the end of its input.
func startTied(c *child.Cmd, _ <-chan struct{}) error { return c.Start() }
