//go:build !unix && !windows

package runner

import "github.com/ingotml/ingot/child"

// startTied starts the child. The end of its input tells it when this process has ended.
func startTied(c *child.Cmd, _ <-chan struct{}) error { return c.Start() }
