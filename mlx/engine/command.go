package engine

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/child"
)

// command returns a child process with what tools need of the setup's environment. When ctx ends, it is killed with its
// children. It runs in dir, or in a folder of its own if dir is empty. Later additions to the environment override
// earlier ones.
func (s *setup) command(ctx context.Context, dir string, additions []string, name string, args ...string) *child.Cmd {
	environ := slices.Concat(child.Allowed(s.environ, child.Tool), additions)
	return s.prepared(child.Command(ctx, environ, name, args...), dir)
}

// userCommand is command with the whole environment, for a program that acts for the user.
func (s *setup) userCommand(
	ctx context.Context, dir string, additions []string, name string, args ...string,
) *child.Cmd {
	return s.prepared(child.Command(ctx, slices.Concat(s.environ, additions), name, args...), dir)
}

func (s *setup) prepared(cmd *child.Cmd, dir string) *child.Cmd {
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	ownGroup(cmd.Cmd)
	return cmd
}

// askVersion runs a program that prints its version and returns the first line of its output.
func (s *setup) askVersion(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := s.command(ctx, "", nil, name, args...).CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, err
}

// lineWriter calls line with each complete line and also keeps the whole output.
type lineWriter struct {
	all  bytes.Buffer
	rest []byte
	line func(string)
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.all.Write(p)
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexAny(w.rest, "\r\n")
		if i < 0 {
			return len(p), nil
		}
		w.line(string(w.rest[:i]))
		w.rest = w.rest[i+1:]
	}
}

// firstLines returns the first n lines of a text, for an error or a log.
func firstLines(text string, n int) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[:min(n, len(lines))]
}
