//go:build unix

package launch

import (
	"fmt"
	"syscall"
)

// Run becomes the program, which so gets all signals, has the terminal, and gives its own exit status. It returns only where that fails.
func (s Start) Run() error {
	if err := syscall.Exec(s.Path, append([]string{s.Path}, s.Args...), s.Env); err != nil {
		return fmt.Errorf("start %s: %w", s.Path, err)
	}
	return nil
}
