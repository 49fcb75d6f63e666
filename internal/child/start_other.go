//go:build !unix && !windows

package child

// StartTied starts the child. When this process ends, the child notices by the end of its input.
func (c *Cmd) StartTied(_ <-chan struct{}) error { return c.Start() }
