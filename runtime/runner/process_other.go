//go:build !unix

package runner

import "os"

func endedBy(*os.ProcessState, string) bool { return false }

func die() { os.Exit(1) }

// Stdout returns standard output for messages. On this system, libraries can still write to it.
func Stdout() (*os.File, error) { return os.Stdout, nil }
