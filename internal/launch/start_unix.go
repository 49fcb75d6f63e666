//go:build unix

package launch

import (
	"fmt"
	"syscall"
)

// Run replaces this process with the program, which then owns the terminal, the signals and the exit status. It returns
// only on failure.
func (s Start) Run() error {
	if err := syscall.Exec(s.Path, append([]string{s.Path}, s.Args...), s.Env); err != nil {
		return fmt.Errorf("start %s: %w", s.Path, err)
	}
	return nil
}
